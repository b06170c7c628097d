/**
 * The filter of a socket that listens for claims of given addresses for a long time: the kernel runs it on each frame and keeps
 * only those that may claim one, so that the ARP and the neighbour discovery of everybody else cost this process nothing.
 * Pure; written in classic BPF, which has no tables: addresses become a few intervals.
 */
import { type Ip, type IpFamily, ipBytes } from '../../core/ip/index.ts';
import type { FilterStep } from '../libc.ts';

// Two steps for each interval. A jump reaches 255 steps, and the last ones have to reach the end.
const MOST_INTERVALS = 60;

/** The lowest and the highest of numbers that follow each other. */
type NumberRange = readonly [low: number, high: number];

// The codes of bpf(4): load a word, load a byte, jump, compare, return.
const LOAD_WORD = 0x20;
const LOAD_BYTE = 0x30;
const JUMP = 0x05;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const IF_AT_LEAST = 0x35;
const RETURN = 0x06;

// Where things are in a frame: Ethernet takes 14 bytes, the header of IPv6 another 40.
const ARP_SENDER_IP = 28;
const IPV6_NEXT_HEADER = 20;
const IPV6_SOURCE_END = 34;
const NDP_TYPE = 54;
const NDP_TARGET_END = 74;
const ICMPV6 = 58;
const SOLICITATION = 135;
const ADVERTISEMENT = 136;

/**
 * The filter for addresses of one family: ARP by the address of its sender; an advertisement by its target, a solicitation by its
 * source. Of IPv6 addresses it looks at the last 32 bits. It may let in more than what was asked for, never less.
 */
export const claimFilter = (family: IpFamily, ips: readonly Ip[], keepBytes: number): readonly FilterStep[] => {
  const intervals = intervalsOf(ips.map(lastWordOf));
  const tests = intervals.flatMap(([low, high], index): readonly FilterStep[] => {
    const stepsLeft = 2 * (intervals.length - index - 1);
    return [
      [IF_AT_LEAST, 0, 1, low],
      [IF_GREATER, 0, stepsLeft + 1, high],
    ];
  });
  // Behind the tests: refuse, then accept.
  const end: readonly FilterStep[] = [
    [RETURN, 0, 0, 0],
    [RETURN, 0, 0, keepBytes],
  ];
  if (family === 4) return [[LOAD_WORD, 0, 0, ARP_SENDER_IP], ...tests, ...end];
  const toRefusal = tests.length;
  return [
    [LOAD_BYTE, 0, 0, IPV6_NEXT_HEADER],
    [IF_EQUAL, 0, toRefusal + 6, ICMPV6],
    [LOAD_BYTE, 0, 0, NDP_TYPE],
    [IF_EQUAL, 0, 2, ADVERTISEMENT],
    [LOAD_WORD, 0, 0, NDP_TARGET_END],
    [JUMP, 0, 0, 2],
    [IF_EQUAL, 0, toRefusal + 1, SOLICITATION],
    [LOAD_WORD, 0, 0, IPV6_SOURCE_END],
    ...tests,
    ...end,
  ];
};

const lastWordOf = (ip: Ip): number => {
  const [a = 0, b = 0, c = 0, d = 0] = ipBytes(ip).slice(-4);
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
};

/** Intervals that cover the numbers; where there would be too many, those with the least between them are joined. */
const intervalsOf = (numbers: readonly number[]): readonly NumberRange[] => {
  const sorted = Uint32Array.from(numbers).sort();
  const gaps: { readonly index: number; readonly width: number }[] = [];
  for (let index = 1; index < sorted.length; index += 1) {
    const width = (sorted[index] ?? 0) - (sorted[index - 1] ?? 0);
    if (width > 1) gaps.push({ index, width });
  }
  const kept = gaps.toSorted((a, b) => b.width - a.width).slice(0, MOST_INTERVALS - 1);
  const starts = [0, ...kept.map(({ index }) => index).toSorted((a, b) => a - b)];
  if (sorted.length === 0) return [];
  return starts.map((start, place): NumberRange => {
    const end = starts[place + 1] ?? sorted.length;
    return [sorted[start] ?? 0, sorted[end - 1] ?? 0];
  });
};
