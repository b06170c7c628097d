/**
 * Watching the network: `ip monitor` tells what changes, ours and everybody's. Most of it is none of our business, pods
 * coming and going above all, and is passed over where one line says enough. Forwarding entries are told as neighbours.
 *
 * Three things nobody tells. What happens before the monitor listens: there is a call after every start, and after every
 * end. What it loses when there is too much: there is a call every minute. And proxy entries, for which the kernel sends
 * nothing (net/core/neighbour.c, 6.18): they are asked for while there are some of ours.
 */
import type { NetworkDesired } from '../../core/node/desired.ts';
import { isOurTable, PRIORITIES } from '../../core/node/numbers.ts';
import type { Timers } from '../timers.ts';
import type { Access } from './access.ts';
import { readProxies } from './listing.ts';
import type { DeviceNames } from './owned.ts';

export interface WatchDeps extends Access {
  readonly clock: Timers;
  readonly names: DeviceNames;
  /** Proxy entries that should be there now. */
  readonly proxies: () => NetworkDesired['proxies'];
  /** Interfaces of the node that matter to us, as last read. */
  readonly interfaces: () => ReadonlySet<string>;
  /** True for a line that tells what should be so; see told.ts. */
  readonly isInStep: (line: string) => boolean;
}

// A start takes some milliseconds, more on a busy node. What happened before is found by the read that the call leads to.
const LISTENS_AFTER_MS = 1000;
// A monitor that cannot be started turns this module into a poll with this period.
const RESTART_AFTER_MS = 1000;
// A monitor that is too slow for a flood of changes loses some and says so where nobody reads.
const LOOK_EVERY_MS = 60_000;
// Drift is to be repaired within a second. A question to the kernel this often is nothing; where a program is started for it, it is a
// quarter of a percent of a core.
const PROXY_PERIOD_MS = 700;

/** Calls back whenever something of ours may have changed. Ends when the signal is aborted. Never rejects. */
export const watchNetwork = async (deps: WatchDeps, onChange: () => void, signal: AbortSignal): Promise<void> => {
  await Promise.all([
    followMonitor(deps, onChange, signal),
    pollProxies(deps, onChange, signal),
    lookSometimes(deps, onChange, signal),
  ]);
};

const lookSometimes = async ({ clock }: WatchDeps, onChange: () => void, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await pause(clock, LOOK_EVERY_MS, signal);
    if (!signal.aborted) onChange();
  }
};

const followMonitor = async (deps: WatchDeps, onChange: () => void, signal: AbortSignal): Promise<void> => {
  const { programs, clock, names, interfaces, isInStep } = deps;
  while (!signal.aborted) {
    const cancel = clock.after(LISTENS_AFTER_MS, onChange);
    await programs.follow(
      ['ip', '-o', 'monitor', 'link', 'address', 'route', 'rule', 'neigh'],
      (line) => {
        if (concerns(line, names, interfaces()) && !isInStep(line)) onChange();
      },
      signal,
    );
    cancel();
    if (signal.aborted) return;
    onChange();
    await pause(clock, RESTART_AFTER_MS, signal);
  }
};

const pollProxies = async (deps: WatchDeps, onChange: () => void, signal: AbortSignal): Promise<void> => {
  const { clock, proxies } = deps;
  while (!signal.aborted) {
    await pause(clock, PROXY_PERIOD_MS, signal);
    const wanted = proxies();
    if (signal.aborted || wanted.length === 0) continue;
    const listed = await readProxies(deps).catch(() => []);
    const held = new Set(listed.map(({ device, ip }) => `${device} ${ip}`));
    // Whether they cannot be read or are gone: the caller reads everything and finds out.
    if (!signal.aborted && !wanted.every(({ device, ip }) => held.has(`${device} ${ip}`))) onChange();
  }
};

const pause = (clock: Timers, delayMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });

/**
 * Whether a line of the monitor may be about something of ours, or about what readHost reads. In doubt, yes.
 *
 *     4: egw0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 ...          a link
 *     4: egw0    inet 172.31.0.1/16 scope global egw0 ...              an address
 *     94:	from all fwmark 0x26010000/0xffff0000 lookup 2601            a rule
 *     172.31.0.2 dev egw0 lladdr 66:00:00:00:00:12 PERMANENT           a neighbour or a forwarding entry
 *     default via 172.31.0.2 dev egw0 table 2601 onlink                a route
 */
export const concerns = (line: string, { tunnel, holder }: DeviceNames, interfaces: ReadonlySet<string>): boolean => {
  const text = line.replace(/^Deleted /, '');
  const isOurs = (device: string | undefined): boolean => device === tunnel || device === holder;
  const link = /^\d+: ([^:@\s]+)[:@]/.exec(text)?.[1];
  // An interface that we do not know yet matters when it gets an address.
  if (link !== undefined) return isOurs(link) || interfaces.has(link);
  const address = /^\d+: (\S+) +inet6? \S+ .*scope (\S+)/.exec(text);
  if (address !== null) return isOurs(address[1]) || address[2] !== 'link';
  const priority = /^(\d+):\t/.exec(text)?.[1];
  if (priority !== undefined) return ourPriorities.includes(Number(priority));
  const device = / dev (\S+)/.exec(text)?.[1];
  if (/ lladdr | (FAILED|INCOMPLETE|NOARP|PERMANENT|STALE|DELAY|PROBE|REACHABLE)/.test(text)) return device === tunnel;
  const table = / table (\S+)/.exec(text)?.[1];
  if (table !== undefined && table !== 'main') return isOurTable(Number(table));
  return isOurs(device) || /^default |\/\d+ .*scope link|\/\d+ dev /.test(text);
};

const ourPriorities: readonly number[] = Object.values(PRIORITIES);
