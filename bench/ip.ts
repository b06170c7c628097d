/**
 * Cost of core/ip beside ip-address, in microseconds per call. The two take turns within one process, so that other
 * work on the machine hits both; read the ratio, not the absolute figure.
 * Run: npx node bench/ip.ts
 */
import { Address4, Address6 } from 'ip-address';
import {
  cidrCover,
  count,
  firstFree,
  formatSet,
  type IntervalSet,
  nthFree,
  type Parsed,
  parseIp,
  poolOf,
} from '../src/core/ip/index.ts';

const ROUNDS = 9;

interface Case {
  readonly name: string;
  readonly calls: number;
  readonly ours: () => unknown;
  readonly theirs?: () => unknown;
}

const must = <T>(parsed: Parsed<T>): T => {
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.value;
};
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

// Results are kept, or the compiler may drop the work.
const sink: unknown[] = [];
const microsecondsPerCall = (calls: number, run: () => unknown): number => {
  const start = process.hrtime.bigint();
  for (let call = 0; call < calls; call += 1) sink[0] = run();
  return Number(process.hrtime.bigint() - start) / 1000 / calls;
};

const pool: IntervalSet = must(poolOf(['10.0.0.0/8', 'fd00::/64']));
const everySecond = Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 7}.${(index & 127) * 2 + 1}`);
const used: IntervalSet = must(poolOf(everySecond));

const cases: readonly Case[] = [
  {
    name: 'read and write an IPv4 address',
    calls: 20_000,
    ours: () => parseIp('10.244.17.203'),
    theirs: () => new Address4('10.244.17.203').correctForm(),
  },
  {
    name: 'read and write an IPv6 address',
    calls: 20_000,
    ours: () => parseIp('fd44:0:0:1::1c:2'),
    theirs: () => new Address6('fd44:0:0:1::1c:2').correctForm(),
  },
  { name: 'pool of a /8 and a /64', calls: 5000, ours: () => poolOf(['10.0.0.0/8', 'fd00::/64']) },
  { name: 'count that pool', calls: 20_000, ours: () => count(pool) },
  { name: 'first free, 1,000 used in holes', calls: 20_000, ours: () => firstFree(pool, used) },
  { name: 'millionth free, 1,000 used in holes', calls: 200, ours: () => nthFree(pool, used, 1_000_000n) },
  { name: 'minimal CIDR cover of the /8 pool', calls: 500, ours: () => cidrCover(pool) },
  { name: 'text of that pool', calls: 5000, ours: () => formatSet(pool) },
];

console.log('operation'.padEnd(40), 'ours us'.padStart(9), 'ip-address us'.padStart(14), 'ratio'.padStart(7));
for (const { name, calls, ours, theirs } of cases) {
  const our: number[] = [];
  const their: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    our.push(microsecondsPerCall(calls, ours));
    if (theirs !== undefined) their.push(microsecondsPerCall(calls, theirs));
  }
  const figure = median(our);
  const peer = their.length > 0 ? median(their) : undefined;
  console.log(
    name.padEnd(40),
    figure.toFixed(2).padStart(9),
    (peer === undefined ? '-' : peer.toFixed(2)).padStart(14),
    (peer === undefined ? '-' : (figure / peer).toFixed(2)).padStart(7),
  );
}
