/**
 * Change: one object of the network to make or to remove, as a value. `text.ts` says it in the words of `ip` and `bridge`,
 * `messages.ts` in netlink. To put means to make the object, or to make as desired what is there under the same key. Every
 * change may be made twice.
 */
import type {
  AddressDesired,
  ForwardingDesired,
  LinkDesired,
  NeighbourDesired,
  RouteDesired,
  RuleDesired,
} from '../../core/node/desired.ts';
import type { WayListed } from './actual.ts';
import type { ProxyListed, RouteListed } from './listing.ts';

export type VxlanDesired = Extract<LinkDesired, { kind: 'vxlan' }>;
export type ProxyEntry = Pick<ProxyListed, 'device' | 'ip'>;

export type Verb = 'put' | 'drop';

export type NetworkChange =
  | { readonly kind: 'address'; readonly verb: Verb; readonly address: AddressDesired; readonly isEip: boolean }
  /** A neighbour that never has to be asked for. */
  | { readonly kind: 'neighbour'; readonly verb: Verb; readonly neighbour: NeighbourDesired }
  /** The route to a neighbour alone, in the main table. */
  | { readonly kind: 'peer-route'; readonly verb: Verb; readonly way: WayListed }
  /** An address that the node answers for on an interface. */
  | { readonly kind: 'proxy'; readonly verb: Verb; readonly proxy: ProxyEntry }
  /** Where the tunnel device sends frames for a MAC address. */
  | { readonly kind: 'forwarding'; readonly verb: Verb; readonly forwarding: ForwardingDesired }
  /** There may be several of the same, and dropping drops one of them. */
  | { readonly kind: 'rule'; readonly verb: Verb; readonly rule: RuleDesired }
  /** The default route of a table. */
  | { readonly kind: 'route'; readonly verb: 'put'; readonly route: RouteDesired }
  /** Any route that somebody put into one of our tables. */
  | { readonly kind: 'route'; readonly verb: 'drop'; readonly route: RouteListed }
  | { readonly kind: 'make-vxlan'; readonly link: VxlanDesired }
  | { readonly kind: 'make-holder'; readonly name: string; readonly type: 'dummy' | 'bridge' }
  | { readonly kind: 'set-link'; readonly link: LinkDesired; readonly settings: LinkSettings }
  /** A device. What is on it goes with it. */
  | { readonly kind: 'drop-link'; readonly name: string };

/** What to set on a device; what is left out stays as it is. */
export interface LinkSettings {
  readonly alias?: string;
  readonly mac?: string;
  readonly mtu?: number;
  readonly isUp?: true;
}

/** True for a change that removes something. */
export const isDrop = (change: NetworkChange): boolean =>
  change.kind === 'drop-link' || ('verb' in change && change.verb === 'drop');
