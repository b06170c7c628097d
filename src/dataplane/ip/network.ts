/**
 * Network makes the devices, addresses, rules, routes and neighbours of this node as desired. It reads first and writes
 * only what differs, so calls with the same value write nothing and cause no events that would lead to the next call.
 *
 * `ip` and `bridge` are not atomic. What is refused is told, and everything else is done all the same.
 */
import type { NetworkDesired } from '../../core/node/desired.ts';
import type { HostView } from '../../core/node/input.ts';
import type { Programs } from '../program.ts';
import { actualOf, type NetworkActual } from './actual.ts';
import { runChanges } from './batch.ts';
import { joined, type NetworkOutcome, nothingDone } from './change.ts';
import { missing, surplus } from './diff.ts';
import { hostOf, type ParentChoice } from './host.ts';
import { type LinkPlan, planLinks, refusalWithoutGbp } from './links.ts';
import { type Listing, readListing } from './listing.ts';
import type { DeviceNames } from './ours.ts';
import { type Clock, watchNetwork } from './watch.ts';

export type { NetworkActual } from './actual.ts';
export type { NetworkOutcome, Refusal } from './change.ts';
export type { ParentChoice } from './host.ts';

/** Calls must not overlap, except with watch. All reject with NETWORK_UNREADABLE when the kernel cannot be read. */
export interface Network {
  /** Makes what is missing or different. Takes away only what is in the way. */
  grow(desired: NetworkDesired): Promise<NetworkOutcome>;
  /** Takes away what is ours and not desired. */
  trim(desired: NetworkDesired): Promise<NetworkOutcome>;
  /** What the kernel holds of ours. */
  read(): Promise<NetworkActual>;
  /** The interface that carries the tunnel, and those on which EIPs can be announced. */
  readHost(choice: ParentChoice): Promise<HostView>;
  /** Takes away everything of ours. */
  remove(): Promise<NetworkOutcome>;
  /** Tells when something may have changed, by whomever; see watch.ts. Ends when the signal is aborted. */
  watch(onChange: () => void, signal: AbortSignal): Promise<void>;
}

export interface NetworkDeps {
  readonly programs: Programs;
  readonly names: DeviceNames;
  readonly clock: Clock;
}

const nothing: NetworkDesired = {
  links: [],
  addresses: [],
  rules: [],
  routes: [],
  neighbours: [],
  forwardings: [],
  proxies: [],
};

/** The network of this node. */
export const createNetwork = ({ programs, names, clock }: NetworkDeps): Network => {
  let desiredProxies: NetworkDesired['proxies'] = [];
  let hostInterfaces: ReadonlySet<string> = new Set();
  // What grow has read, for the trim that follows with the same value. What grow has put since is desired: not for trim.
  let grown: { readonly desired: NetworkDesired; readonly actual: NetworkActual } | undefined;

  const list = (): Promise<Listing> => readListing(programs, names.tunnel);
  const read = async (): Promise<NetworkActual> => actualOf(await list(), names);

  const trim = async (desired: NetworkDesired): Promise<NetworkOutcome> => {
    const actual = grown?.desired === desired ? grown.actual : await read();
    grown = undefined;
    desiredProxies = desired.proxies;
    return runChanges(programs, surplus(desired, actual));
  };

  return {
    grow: async (desired) => {
      grown = undefined;
      desiredProxies = desired.proxies;
      let actual = await read();
      const plans = planLinks(desired.links, actual);
      let outcome = nothingDone;
      for (const plan of plans) outcome = joined(outcome, await carryOut(programs, plan));
      if (plans.length > 0) {
        // A device that was made, set up or given another MAC address has lost, or never had, what was read.
        actual = await read();
        const refused = desired.links.map((link) => refusalWithoutGbp(link, actual)).filter((one) => one !== undefined);
        outcome = joined(outcome, { changed: 0, refused });
      }
      grown = { desired, actual };
      return joined(outcome, await runChanges(programs, missing(desired, actual)));
    },
    trim,
    read,
    readHost: async (choice) => {
      const host = hostOf(await list(), choice, names);
      const parent = 'name' in host.parent ? [host.parent.name] : [];
      hostInterfaces = new Set([...parent, ...host.interfaces.map(({ name }) => name)]);
      return host;
    },
    remove: () => trim(nothing),
    watch: (onChange, signal) =>
      watchNetwork(
        { programs, clock, names, proxies: () => desiredProxies, interfaces: () => hostInterfaces },
        onChange,
        signal,
      ),
  };
};

/** Does what a plan says, up to the first thing that is refused: the rest needs it. */
const carryOut = async (programs: Programs, plan: LinkPlan): Promise<NetworkOutcome> => {
  if (plan.refusal !== undefined) return { changed: 0, refused: [plan.refusal] };
  let outcome = await runChanges(programs, plan.clear);
  if (plan.make.length > 0) {
    let made = nothingDone;
    for (const way of plan.make) {
      made = await runChanges(programs, [way]);
      if (made.changed > 0) break;
    }
    outcome = joined(outcome, made);
    if (made.changed === 0) return outcome;
  }
  return joined(outcome, await runChanges(programs, plan.set));
};
