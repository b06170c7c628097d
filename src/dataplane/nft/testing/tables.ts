/** Desired tables for tests: a small one that fills every container, a big one, and random ones. Not shipped. */
import type { TableDesired, TableElements, TableSettings } from '../../../core/node/desired.ts';
import {
  classMark,
  DROP,
  gatewayMark,
  LEAVE_ALONE,
  markText,
  replyMark,
  slotMark,
  snatMark,
} from '../../../core/node/numbers.ts';

export const settings: TableSettings = {
  device: 'egw0',
  parent: 'eth0',
  port: 7789,
  mss: { ipv4: 1410, ipv6: 1390 },
  isGated: false,
  isStrict: false,
};

const classOf = (number: number): string => markText(classMark(number));
const verdictOf = (slot: number): string => markText(slot === 0 ? DROP : slotMark(slot));
const ALONE = markText(LEAVE_ALONE);

/** A node that is a worker for slot 1 and the gateway node of slots 2 and 3. Every container holds something. */
export const smallTable: TableDesired = {
  settings,
  elements: {
    vteps4: setOf('10.6.0.11', '10.6.0.12'),
    vteps6: setOf('fd06::11', 'fd06::12'),
    eips4: setOf('10.6.0.100', '10.6.0.101'),
    eips6: setOf('fd06::e:100'),
    // Neighbours in the line of addresses stay two elements.
    cluster4: setOf('10.96.0.0/12', '10.244.0.0/17', '10.244.128.0/17', '169.254.0.0/16', '192.0.2.1-192.0.2.9'),
    cluster6: setOf('::1', 'fd44::/32', 'fe80::/10'),
    range4: setOf('10.244.0.0/16'),
    range6: setOf('fd44::/32'),
    known4: setOf('10.244.1.1', '10.244.1.2', '10.244.1.3'),
    known6: setOf('fd44::1:1', 'fd44::1:2', 'fd44::1:3'),
    pod4: mapOf(['10.244.1.1', classOf(1)], ['10.244.1.2', classOf(2)]),
    pod6: mapOf(['fd44::1:1', classOf(1)], ['fd44::1:2', classOf(2)]),
    net4: mapOf(
      ['10.244.7.0/24', classOf(3)],
      ['10.244.8.1-10.244.8.6', classOf(3)],
      ['255.255.255.240/28', classOf(2)],
    ),
    net6: mapOf(['fd44:0:0:7::/64', classOf(3)]),
    dst4: mapOf(
      [`${classOf(1)} . 203.0.113.0/24`, verdictOf(1)],
      [`${classOf(1)} . 203.0.114.1-203.0.114.6`, ALONE],
      [`${classOf(2)} . 0.0.0.0/0`, verdictOf(2)],
      [`${classOf(3)} . 198.51.100.7`, verdictOf(0)],
    ),
    dst6: mapOf([`${classOf(1)} . 2001:db8::/32`, verdictOf(1)], [`${classOf(3)} . ::102:304`, verdictOf(3)]),
    dflt4: mapOf([classOf(1), verdictOf(1)], [classOf(3), verdictOf(0)]),
    dflt6: mapOf([classOf(1), ALONE]),
    slot_fwd: mapOf(
      [markText(slotMark(1)), markText(gatewayMark(1, 1))],
      [markText(slotMark(2)), markText(snatMark(2))],
      [markText(slotMark(3)), markText(snatMark(3))],
    ),
    slot_eip4: mapOf([markText(snatMark(2)), '10.6.0.100'], [markText(snatMark(3)), '10.6.0.101']),
    slot_eip6: mapOf([markText(snatMark(2)), 'fd06::e:100']),
    vtep_node: mapOf(['66:00:00:00:00:12', markText(replyMark(0x8012))]),
  },
};

/** The small table with some containers replaced. */
export const smallTableWith = (elements: Partial<TableElements>): TableDesired => ({
  settings,
  elements: { ...smallTable.elements, ...elements },
});

/** As many policies as wished with ten pods and two destinations each, dual stack, all on one node. */
export const bigTable = (policies: number): TableDesired => {
  const numbers = Array.from({ length: policies }, (_, index) => index + 1);
  const pods = numbers.flatMap((number) =>
    Array.from({ length: 10 }, (_, index) => ({ place: number * 10 + index, mark: classOf(number) })),
  );
  return smallTableWith({
    pod4: new Map(pods.map(({ place, mark }) => [ipv4At(0x0a640000 + place), mark])),
    pod6: new Map(pods.map(({ place, mark }) => [`fd44::1:${hex(place >>> 16)}:${hex(place & 0xffff)}`, mark])),
    dst4: new Map(
      numbers.flatMap((number) => [1, 2].map((net) => [`${classOf(number)} . 203.0.${net}.0/24`, verdictOf(number)])),
    ),
    dst6: new Map(
      numbers.flatMap((number) => [1, 2].map((net) => [`${classOf(number)} . 2001:${net}::/32`, verdictOf(number)])),
    ),
    dflt4: new Map(numbers.map((number) => [classOf(number), verdictOf(number)])),
    slot_fwd: new Map(numbers.map((slot) => [markText(slotMark(slot)), markText(gatewayMark(1, slot))])),
  });
};

/** How many numbers a random table is made of. */
export const TABLE_NUMBERS = 6;

/**
 * The table that some numbers stand for. Tests draw the numbers with fast-check; smaller numbers stand for simpler
 * tables. Keys are few, so that two tables share many; ranges of one class never overlap.
 */
export const tableFrom = (numbers: readonly number[]): TableDesired => {
  const [in4 = 0, in6 = 0, cuts4 = 0, cuts6 = 0, some = 0, seed = 0] = numbers;
  const addresses4 = bitsOf(in4 % 4096).map((bit) => ipv4At(0x0a000001 + bit * 77));
  const addresses6 = bitsOf(in6 % 4096).map((bit) => `fd00::${hex(1 + bit * 4096)}`);
  const ranges4 = ranges(bitsOf(cuts4), ipv4Range);
  const ranges6 = ranges(bitsOf(cuts6), ipv6Range);
  const marks = bitsOf(some % 512);
  const valueAt = (index: number): string => verdictOf((index + (seed % 6)) % 4);
  const classes = [1, 2];
  const joined = (texts: readonly string[]) =>
    new Map(classes.flatMap((of) => texts.map((text, index) => [`${classOf(of)} . ${text}`, valueAt(index + of)])));
  const valued = (keys: readonly string[], value = valueAt) => new Map(keys.map((key, index) => [key, value(index)]));
  const slotKeys = marks.map((slot) => markText(slotMark(slot)));
  return {
    settings,
    elements: {
      vteps4: setOf(...addresses4),
      vteps6: setOf(...addresses6),
      eips4: setOf(...addresses4.slice(3)),
      eips6: setOf(...addresses6.slice(3)),
      cluster4: setOf(...ranges4),
      cluster6: setOf(...ranges6),
      range4: setOf(...ranges4.slice(1)),
      range6: setOf(...ranges6.slice(1)),
      known4: setOf(...addresses4.slice(1)),
      known6: setOf(...addresses6.slice(1)),
      pod4: valued(addresses4),
      pod6: valued(addresses6),
      net4: valued(ranges4),
      net6: valued(ranges6),
      dst4: joined(ranges4),
      dst6: joined(ranges6),
      dflt4: valued(marks.map(classOf)),
      dflt6: valued(marks.slice(2).map(classOf)),
      slot_fwd: valued(slotKeys, (index) => markText(gatewayMark(1 + (seed % 6), index))),
      slot_eip4: valued(
        marks.map((slot) => markText(snatMark(slot))),
        (index) => ipv4At(0x0a000001 + index + (seed % 6)),
      ),
      slot_eip6: valued(
        marks.map((slot) => markText(snatMark(slot))),
        (index) => `fd00::${hex(1 + index + (seed % 6))}`,
      ),
      vtep_node: valued(marks.map((mark) => `66:00:00:00:00:0${mark}`)),
    },
  };
};

function setOf(...keys: readonly string[]): ReadonlyMap<string, string> {
  return new Map(keys.map((key) => [key, '']));
}

function mapOf(...elements: readonly (readonly [string, string])[]): ReadonlyMap<string, string> {
  return new Map(elements);
}

/** The places of the bits that are set. */
function bitsOf(number: number): number[] {
  return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => ((number >>> bit) & 1) === 1);
}

/** Ranges between neighbouring cuts: some touch the next one, some are a single address. */
function ranges(cuts: readonly number[], print: (first: number, last: number) => string): string[] {
  return cuts.slice(1).flatMap((end, index) => {
    const start = cuts[index] ?? 0;
    if ((start + end) % 3 === 0) return [];
    return [print(start * 8, (start + end) % 3 === 1 ? start * 8 : end * 8 - 1)];
  });
}

function ipv4Range(first: number, last: number): string {
  return rangeText(ipv4At(0x0b000000 + first), ipv4At(0x0b000000 + last), { first, last, width: 32 });
}

function ipv6Range(first: number, last: number): string {
  return rangeText(`fd0b::${hex(0x1000 + first)}`, `fd0b::${hex(0x1000 + last)}`, { first, last, width: 128 });
}

/** A CIDR where the range is one, as nft prints it. */
function rangeText(start: string, end: string, range: { first: number; last: number; width: number }): string {
  if (range.first === range.last) return start;
  const bits = Math.log2(range.last - range.first + 1);
  return Number.isInteger(bits) && range.first % 2 ** bits === 0 ? `${start}/${range.width - bits}` : `${start}-${end}`;
}

function ipv4At(value: number): string {
  return [24, 16, 8, 0].map((bits) => (value >>> bits) & 0xff).join('.');
}

function hex(value: number): string {
  return value.toString(16);
}
