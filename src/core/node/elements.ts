/** The elements of the table of a node: what is decided, in the words of the containers in desired.ts. */

import type { PolicyView } from '../cluster/view.ts';
import { exchangedBetween, keysOfEither, keysToCompare, MapChangeLog } from '../incremental/change-log.ts';
import {
  familyOf,
  formatSet,
  type IntervalSet,
  type Ip,
  type IpFamily,
  isIpv4,
  isIpv6,
  ofFamily,
} from '../ip/index.ts';
import type { Bindings, SlotBinding } from './bindings.ts';
import type { SlotSource } from './claims.ts';
import { assignClassNumbers, type ClassByAddress, type Net } from './classes.ts';
import type { Claim, TableElements } from './desired.ts';
import type { Destinations } from './destinations.ts';
import { classMark, gatewayMark, LEAVE_ALONE, markText, replyMark, slotMark, snatMark } from './numbers.ts';
import type { TunnelEnd } from './tunnel-ends.ts';
import type { Verdicts } from './verdicts.ts';

type Elements = ReadonlyMap<string, string>;
type Some<Name extends keyof TableElements> = Pick<TableElements, Name>;

const none: Elements = new Map();
const setOfTexts = (texts: Iterable<string>): Elements => new Map(Iterator.from(texts).map((text) => [text, '']));

/** The elements that a family has, if it is turned on. */
const ifOn = (families: readonly IpFamily[], family: IpFamily, make: (family: IpFamily) => Elements): Elements =>
  families.includes(family) ? make(family) : none;

/** Who may send tunnel packets, and how replies find back. Tunnel packets may be of a family that is turned off. */
export const tunnelElements = (ends: ReadonlyMap<string, TunnelEnd>): Some<'vteps4' | 'vteps6' | 'vtep_node'> => {
  const parents = [...ends.values()].map(({ parent }) => parent);
  return {
    vteps4: setOfTexts(parents.map(({ ipv4 }) => ipv4).filter((ip) => ip !== undefined)),
    vteps6: setOfTexts(parents.map(({ ipv6 }) => ipv6).filter((ip) => ip !== undefined)),
    vtep_node: new Map([...ends.values()].map(({ mac, bits }) => [mac, markText(replyMark(bits))])),
  };
};

/** What is not outside the cluster. */
export const clusterElements = (inside: IntervalSet, families: readonly IpFamily[]): Some<'cluster4' | 'cluster6'> => {
  const rangesOf = (family: IpFamily): Elements => setOfTexts(formatSet(ofFamily(inside, family)));
  return { cluster4: ifOn(families, 4, rangesOf), cluster6: ifOn(families, 6, rangesOf) };
};

/** For strict start: where pods are, and the addresses of those that are known. Empty where strict start is off. */
export const strictElements = (
  isStrict: boolean,
  known: ReadonlySet<Ip>,
  podRanges: IntervalSet,
  families: readonly IpFamily[],
): Some<'range4' | 'range6' | 'known4' | 'known6'> => {
  if (!isStrict) return { range4: none, range6: none, known4: none, known6: none };
  const ips = [...known];
  const rangesOf = (family: IpFamily): Elements => setOfTexts(formatSet(ofFamily(podRanges, family)));
  return {
    range4: ifOn(families, 4, rangesOf),
    range6: ifOn(families, 6, rangesOf),
    known4: ifOn(families, 4, () => setOfTexts(ips.filter(isIpv4))),
    known6: ifOn(families, 6, () => setOfTexts(ips.filter(isIpv6))),
  };
};

/**
 * Sources with their classes, and classes with their destinations. `destinations` has every class of the sources, and
 * `verdicts` every policy of the classes.
 */
export const classElements = (
  byAddress: ClassByAddress,
  nets: readonly Net[],
  destinations: ReadonlyMap<string, Destinations>,
  verdicts: Verdicts,
  families: readonly IpFamily[],
): Some<'pod4' | 'pod6' | 'net4' | 'net6' | 'dst4' | 'dst6' | 'dflt4' | 'dflt6'> => {
  const numbers = assignClassNumbers(destinations.keys());
  const verdictOf = (policy: PolicyView, family: IpFamily): number => verdicts.get(policy)?.[family] ?? LEAVE_ALONE;
  // There are more numbers than a node has sources, so that every class has one.
  const markOf = (name: string): string => markText(classMark(numbers.get(name) ?? 0));
  const pods = (family: IpFamily): Elements =>
    new Map([...byAddress].filter(([ip]) => familyOf(ip) === family).map(([ip, { name }]) => [ip, markOf(name)]));
  const sources = (family: IpFamily): Elements =>
    new Map(
      nets.flatMap((net) =>
        formatSet(ofFamily(net.addresses, family)).map((range) => [range, markOf(net.class.name)] as const),
      ),
    );
  const ranges = (family: IpFamily): Elements => {
    const elements = new Map<string, string>();
    for (const [name, { parts }] of destinations) {
      const mark = markOf(name);
      for (const { ranges: texts, policy } of parts) {
        const verdict = markText(policy === undefined ? LEAVE_ALONE : verdictOf(policy, family));
        for (const text of texts[family]) elements.set(`${mark} . ${text}`, verdict);
      }
    }
    return elements;
  };
  const defaults = (family: IpFamily): Elements => {
    const elements = new Map<string, string>();
    for (const [name, { otherwise }] of destinations) {
      if (otherwise !== undefined) elements.set(markOf(name), markText(verdictOf(otherwise, family)));
    }
    return elements;
  };
  return {
    pod4: ifOn(families, 4, pods),
    pod6: ifOn(families, 6, pods),
    net4: ifOn(families, 4, sources),
    net6: ifOn(families, 6, sources),
    dst4: ifOn(families, 4, ranges),
    dst6: ifOn(families, 6, ranges),
    dflt4: ifOn(families, 4, defaults),
    dflt6: ifOn(families, 6, defaults),
  };
};

/**
 * Makes a function that tells where each slot goes from this node. A slot whose gateway node cannot be reached is missing, so
 * it is dropped. It remembers its last call: only slots with other bindings are written anew, and with none it is the same
 * map again. The map has a change log.
 */
export const createForwarding = () => {
  const changeLog = new MapChangeLog<string>();
  let slot_fwd: Elements = changeLog.mark(new Map());
  let last: {
    readonly bySlot: Bindings['bySlot'];
    readonly node: string;
    readonly numbers: ReadonlyMap<string, number>;
  };
  last = { bySlot: new Map(), node: '', numbers: new Map() };
  return ({ bySlot }: Bindings, node: string, numbers: ReadonlyMap<string, number>): Some<'slot_fwd'> => {
    const isSameWay = last.node === node && last.numbers === numbers;
    const slots = (isSameWay ? keysToCompare : keysOfEither)(last.bySlot, bySlot);
    last = { bySlot, node, numbers };
    const changed = new Map<string, string | undefined>();
    for (const slot of slots) {
      const mark = markText(slotMark(slot));
      const way = wayOf(bySlot.get(slot), node, numbers);
      if (slot_fwd.get(mark) !== way) changed.set(mark, way);
    }
    slot_fwd = withChanges(slot_fwd, changed, changeLog);
    return { slot_fwd };
  };
};

/** Where the packets of a slot go; undefined when nowhere. */
const wayOf = (
  binding: SlotBinding | undefined,
  node: string,
  numbers: ReadonlyMap<string, number>,
): string | undefined => {
  if (binding === undefined) return undefined;
  if (binding.node === node) return markText(snatMark(binding.slot));
  const number = numbers.get(binding.node);
  return number === undefined ? undefined : markText(gatewayMark(number, binding.slot));
};

/** The elements with others in their places, or the same map when there are none. */
const withChanges = (
  elements: Elements,
  changed: ReadonlyMap<string, string | undefined>,
  changeLog: MapChangeLog<string>,
): Elements => {
  if (changed.size === 0) return elements;
  const next = new Map(elements);
  for (const [key, value] of changed) {
    if (value === undefined) next.delete(key);
    else next.set(key, value);
    changeLog.touch(key);
  }
  return changeLog.mark(next);
};

/** The EIPs of this node, which its own stack must not answer for. */
export const eipElements = (claims: readonly Claim[]): Some<'eips4' | 'eips6'> => {
  const ips = claims.map(({ ip }) => ip);
  return { eips4: setOfTexts(ips.filter(isIpv4)), eips6: setOfTexts(ips.filter(isIpv6)) };
};

/** Makes a function that tells the slots that leave here, with the addresses they get. It remembers its last call. */
export const createSources = () => {
  const [ipv4, ipv6] = [createSourceMap(), createSourceMap()];
  return (sources: readonly SlotSource[]): Some<'slot_eip4' | 'slot_eip6'> => ({
    slot_eip4: ipv4(sources.filter(({ ip }) => isIpv4(ip))),
    slot_eip6: ipv6(sources.filter(({ ip }) => isIpv6(ip))),
  });
};

/** The slots of one family: only those that are others, or have another address, are looked at. The map has a change log. */
const createSourceMap = () => {
  const changeLog = new MapChangeLog<string>();
  let elements: Elements = changeLog.mark(new Map());
  let last: ReadonlyMap<string, SlotSource> = new Map();
  return (list: readonly SlotSource[]): Elements => {
    const sources = new Map(list.map((source) => [source.group, source]));
    const changed = new Map<string, string | undefined>();
    for (const [group, { slots }] of last) {
      const now = sources.get(group)?.slots ?? [];
      if (now === slots) continue;
      for (const slot of exchangedBetween(slots, now)?.gone ?? slots) changed.set(markText(snatMark(slot)), undefined);
    }
    // After all that are gone: a slot may have left one group for another.
    for (const [group, { slots, ip }] of sources) {
      const before = last.get(group);
      const isSameIp = before?.ip === ip;
      if (isSameIp && before.slots === slots) continue;
      const come = isSameIp ? exchangedBetween(before.slots, slots)?.come : undefined;
      for (const slot of come ?? slots) changed.set(markText(snatMark(slot)), ip);
    }
    last = sources;
    const differing = changed.entries().filter(([mark, ip]) => elements.get(mark) !== ip);
    elements = withChanges(elements, new Map(differing), changeLog);
    return elements;
  };
};
