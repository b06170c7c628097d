/**
 * What `ip monitor` tells is most often what we have just done ourselves. A line that says what is desired anyway needs no
 * look at the kernel, which starts several programs. Pure.
 */
import { familyOf, isIpv6 } from '../../core/ip/index.ts';
import type { NetworkDesired } from '../../core/node/desired.ts';
import { METRIC } from './actual.ts';
import { ruleText } from './text.ts';

/** Says whether a line tells that something is there which is desired, or is gone which is not. In doubt it says no. */
export type IsInStep = (line: string) => boolean;

/** Makes the function for a desired value. */
export const inStepWith = (desired: NetworkDesired): IsInStep => {
  const facts = factsOf(desired);
  const subjects = new Set(facts.map(({ subject }) => subject));
  const whole = new Set(facts.map(wholeOf));
  const devices = new Set(desired.links.map(({ name }) => name));
  return (line) => {
    const text = line.replace(/^Deleted /, '').trim();
    // The kernel's own routes to the addresses of our devices, which come and go with them.
    const kernelRoute = /^\S+ dev (\S+) proto kernel /.exec(text);
    if (kernelRoute !== null) return devices.has(kernelRoute[1] ?? '');
    const fact = factIn(text);
    if (fact === undefined) return false;
    if (!line.startsWith('Deleted ')) return whole.has(wholeOf(fact));
    return !subjects.has(fact.subject) && (fact.otherwise === undefined || !whole.has(wholeOf(fact.otherwise)));
  };
};

/** What something is, and how it is: of what is gone, only the first counts. */
interface Fact {
  readonly subject: string;
  readonly state: string;
  /** What else it may be about: a forwarding entry that was made without NOARP looks like a neighbour. */
  readonly otherwise?: Fact;
}

const wholeOf = ({ subject, state }: Fact): string => `${subject} ${state}`;

/** Everything that is desired, each in the words of `factIn`. */
const factsOf = (desired: NetworkDesired): readonly Fact[] => {
  const holders = new Set(desired.links.filter(({ kind }) => kind === 'holder').map(({ name }) => name));
  return [
    ...desired.addresses.map(({ device, ip, prefixLength }) => ({
      subject: `address ${device} ${ip}/${prefixLength}`,
      state: isIpv6(ip) && holders.has(device) ? 'deprecated' : '',
    })),
    ...desired.rules.map((rule) => ({ subject: `rule ${ruleText(rule)}`, state: '' })),
    ...desired.neighbours.map(({ device, ip, mac }) => ({ subject: `neighbour ${device} ${ip}`, state: mac })),
    ...desired.neighbours.map(({ device, ip }) => ({
      subject: `way ${device} ${ip}`,
      state: `${METRIC[familyOf(ip)]}`,
    })),
    ...desired.forwardings.map(({ device, mac, to }) => ({ subject: `forwarding ${device} ${mac}`, state: to })),
    ...desired.routes.map(({ table, via, device }) => ({
      subject: `route ${table} ${familyOf(via)}`,
      state: `${via} ${device} ${METRIC[familyOf(via)]}`,
    })),
  ];
};

/** What a line is about; undefined when it is something else, or not as we would have made it. */
const factIn = (text: string): Fact | undefined => {
  const address = /^\d+: (\S+) +inet6? (\S+) scope global(.*) valid_lft forever /.exec(text);
  if (address !== null) {
    const [, device, prefix, flags = ''] = address;
    if (/tentative|dadfailed|secondary/.test(flags)) return undefined;
    return { subject: `address ${device} ${prefix}`, state: flags.includes(' deprecated ') ? 'deprecated' : '' };
  }
  const rule = /^(\d+):\tfrom all fwmark (\S+)\/(\S+) (lookup|goto) (\d+)(?: \[unresolved\])?$/.exec(text);
  if (rule !== null) {
    const [, priority, mark, mask, verb, target] = rule;
    return { subject: `rule pref ${priority} fwmark ${hex(mark)}/${hex(mask)} ${verb} ${target}`, state: '' };
  }
  const neighbour = /^(\S+) dev (\S+) lladdr (\S+) (NOARP )?PERMANENT$/.exec(text);
  if (neighbour !== null) {
    const [, ip = '', device, mac = '', isForwarding] = neighbour;
    const forwarding = { subject: `forwarding ${device} ${mac}`, state: ip };
    return isForwarding === undefined
      ? { subject: `neighbour ${device} ${ip}`, state: mac, otherwise: forwarding }
      : forwarding;
  }
  const way = /^([^/ ]+) dev (\S+)(?: scope link)?(?: metric (\d+))?(?: pref medium)?$/.exec(text);
  if (way !== null) {
    const [, ip, device, metric = '0'] = way;
    return { subject: `way ${device} ${ip}`, state: metric };
  }
  const route = /^default via (\S+) dev (\S+) table (\d+)(?: metric (\d+))? onlink(?: pref medium)?$/.exec(text);
  if (route !== null) {
    const [, via = '', device, table, metric = '0'] = route;
    return { subject: `route ${table} ${via.includes(':') ? 6 : 4}`, state: `${via} ${device} ${metric}` };
  }
  return undefined;
};

// Some versions of ip write 0 without its prefix.
const hex = (text = ''): string => `0x${Number(text).toString(16)}`;
