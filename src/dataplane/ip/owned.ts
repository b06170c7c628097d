/**
 * What in the kernel is ours. Nothing else is ever changed:
 *
 * - devices: a vxlan device with the name of the tunnel, a dummy device or port-less bridge with the name of the EIP
 *   device, and devices of those kinds under any name that carry our tag, from before they were renamed;
 * - everything on those devices: addresses, permanent neighbours, forwarding entries;
 * - routing tables by number, with all that is in them; rules by priority, if they lead into such a table or jump;
 * - proxy entries by the number they are signed with.
 */
import type { RuleDesired } from '../../core/node/desired.ts';
import { isOurTable, PRIORITIES } from '../../core/node/numbers.ts';
import type { LinkListed, ProxyListed, RuleListed } from './listing.ts';

/** How our two devices are called. */
export interface DeviceNames {
  readonly tunnel: string;
  readonly holder: string;
}

/** The tag (ifalias) of our devices. It survives a change of their name in the configuration; `ip link` shows it. */
export const TAG = 'sallyport';

/**
 * The number that our proxy entries are signed with. Those below 5 belong to the kernel, and 38 is nobody's in
 * /etc/iproute2/rt_protos of Debian 12. It is 0x26, as in our marks.
 */
export const PROTOCOL = 38;

const HOLDER_KINDS: readonly (string | undefined)[] = ['dummy', 'bridge'];

/** What a device is to us; undefined for one that is none of ours. */
export const roleOf = (
  link: LinkListed,
  all: readonly LinkListed[],
  names: DeviceNames,
): keyof DeviceNames | undefined => {
  const isTagged = link.alias === TAG;
  if (link.kind === 'vxlan') return isTagged || link.name === names.tunnel ? 'tunnel' : undefined;
  if (!HOLDER_KINDS.includes(link.kind) || !(isTagged || link.name === names.holder)) return undefined;
  // A bridge with ports carries somebody's traffic, whoever made it.
  return all.some(({ master }) => master === link.name) ? undefined : 'holder';
};

const ourPriorities: readonly number[] = Object.values(PRIORITIES);

/** The rule as a desired value; undefined when it is not ours. */
export const asOurRule = (rule: RuleListed): RuleDesired | undefined => {
  const { family, priority, mark, mask, table, goto } = rule;
  if (rule.isNarrower || mark === undefined || !ourPriorities.includes(priority)) return undefined;
  if (goto !== undefined) return { family, priority, mark, mask, action: { kind: 'goto', priority: goto } };
  if (table === undefined || !isOurTable(table)) return undefined;
  return { family, priority, mark, mask, action: { kind: 'lookup', table } };
};

/** True for an entry that we made. */
export const isOurProxy = ({ protocol }: ProxyListed): boolean => protocol === PROTOCOL;
