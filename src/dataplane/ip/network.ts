/**
 * Network makes the devices, addresses, rules, routes and neighbours of this node as desired. It writes only what differs
 * from what the kernel holds, so calls with the same value write nothing and cause no events that would lead to the next
 * call. It reads the kernel first, unless it knows what it holds: after a value was applied whole, until distrusted.
 *
 * `ip` and `bridge` are not atomic. What is refused is told, and everything else is done all the same.
 */
import { isDeepStrictEqual } from 'node:util';
import type { NetworkDesired } from '../../core/node/desired.ts';
import type { HostView } from '../../core/node/input.ts';
import type { Timers } from '../timers.ts';
import type { Access } from './access.ts';
import { actualOf, type NetworkActual } from './actual.ts';
import { runChanges } from './batch.ts';
import { missing, surplus } from './diff.ts';
import { hostOf, type ParentChoice } from './host.ts';
import { knownStateOf } from './known-state.ts';
import { type LinkPlan, planLinks, refusalWithoutGbp } from './links.ts';
import { type Listing, readListing } from './listing.ts';
import { joined, type NetworkOutcome, nothingDone } from './outcome.ts';
import { type IsInStep, inStepWith } from './own-events.ts';
import type { DeviceNames } from './owned.ts';
import { watchNetwork } from './watch.ts';

export type { NetworkActual } from './actual.ts';
export type { ParentChoice } from './host.ts';
export type { ChangeRefusal, NetworkOutcome } from './outcome.ts';

/** Calls must not overlap, except with watch. All reject with NETWORK_UNREADABLE when the kernel cannot be read. */
export interface Network {
  /** Makes what is missing or different. Takes away only what is in the way. */
  grow(desired: NetworkDesired): Promise<NetworkOutcome>;
  /** Takes away what is ours and not desired. */
  trim(desired: NetworkDesired): Promise<NetworkOutcome>;
  /** Says that somebody else may have changed something: the next step reads the kernel first. */
  distrust(): void;
  /** What the kernel holds of ours. */
  read(): Promise<NetworkActual>;
  /** The interface that carries the tunnel, and those on which EIPs can be announced. */
  readHost(choice: ParentChoice): Promise<HostView>;
  /** Takes away everything of ours. */
  remove(): Promise<NetworkOutcome>;
  /** Tells when something may have changed, by whomever; see watch.ts. Ends when the signal is aborted. */
  watch(onChange: () => void, signal: AbortSignal): Promise<void>;
}

export interface NetworkDeps extends Access {
  readonly names: DeviceNames;
  readonly clock: Timers;
}

/** A value, and what the kernel held when it was applied. */
interface AppliedNetwork {
  readonly desired: NetworkDesired;
  readonly actual: NetworkActual;
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
export const createNetwork = ({ programs, socket, names, clock }: NetworkDeps): Network => {
  const access = { programs, socket };
  // What was asked for last, and which lines of a monitor say nothing else.
  let wanted = nothing;
  let told: { readonly desired: NetworkDesired; readonly isInStep: IsInStep } | undefined;
  // What the host was read from while nothing else was known, for the step that follows.
  let listed: Listing | undefined;
  // How often somebody was distrusted: what was read while that happened is not kept.
  let doubts = 0;
  let hostInterfaces: ReadonlySet<string> = new Set();
  // What grow has found, for the trim that follows with the same value. What grow has put since is desired: not for trim.
  let grown: (AppliedNetwork & { readonly isWhole: boolean }) | undefined;
  // A value that was applied whole, and what the kernel holds since; undefined when that is not known.
  let settled: AppliedNetwork | undefined;

  const list = (): Promise<Listing> => readListing(programs, names.tunnel);
  const read = async (): Promise<NetworkActual> => actualOf(await list(), names);
  const isInStep: IsInStep = (line) => {
    if (told?.desired !== wanted) told = { desired: wanted, isInStep: inStepWith(wanted) };
    return told.isInStep(line);
  };

  const trim = async (desired: NetworkDesired): Promise<NetworkOutcome> => {
    const before = grown?.desired === desired ? grown : undefined;
    grown = undefined;
    listed = undefined;
    wanted = desired;
    const actual = before?.actual ?? (await read());
    const outcome = await runChanges(access, surplus(desired, actual));
    const isWhole = before?.isWhole === true && outcome.refused.length === 0;
    settled = isWhole ? { desired, actual: knownStateOf(desired, actual) } : undefined;
    return outcome;
  };

  return {
    grow: async (desired) => {
      // Devices that are to be made or changed are looked at.
      const known = isDeepStrictEqual(settled?.desired.links, desired.links) ? settled?.actual : undefined;
      grown = undefined;
      settled = undefined;
      wanted = desired;
      let actual = known ?? (listed === undefined ? await read() : actualOf(listed, names));
      listed = undefined;
      const plans = known === undefined ? planLinks(desired.links, actual) : [];
      let outcome = nothingDone;
      for (const plan of plans) outcome = joined(outcome, await carryOut(access, plan));
      if (plans.length > 0) {
        // A device that was made, set up or given another MAC address has lost, or never had, what was read.
        actual = await read();
        const refused = desired.links.map((link) => refusalWithoutGbp(link, actual)).filter((one) => one !== undefined);
        outcome = joined(outcome, { changed: 0, refused });
      }
      if (known === undefined) await setGro(access, desired);
      outcome = joined(outcome, await runChanges(access, missing(desired, actual)));
      grown = { desired, actual, isWhole: outcome.refused.length === 0 };
      return outcome;
    },
    trim,
    distrust: () => {
      doubts += 1;
      grown = undefined;
      settled = undefined;
      listed = undefined;
    },
    read,
    readHost: async (choice) => {
      const before = doubts;
      const listing = await list();
      listed = settled === undefined && doubts === before ? listing : undefined;
      const host = hostOf(listing, choice, names);
      const parent = 'name' in host.parent ? [host.parent.name] : [];
      hostInterfaces = new Set([...parent, ...host.interfaces.map(({ name }) => name)]);
      return host;
    },
    remove: () => trim(nothing),
    watch: (onChange, signal) =>
      watchNetwork(
        { programs, socket, clock, names, proxies: () => wanted.proxies, interfaces: () => hostInterfaces, isInStep },
        onChange,
        signal,
      ),
  };
};

/**
 * Whether our tunnel joins packets. A kernel that does not let us is slower and no more: nothing is told. `ip` has no word
 * for it, and the image has no ethtool, which is tried all the same.
 */
const setGro = async ({ programs, socket }: Access, { links }: NetworkDesired): Promise<void> => {
  for (const link of links) {
    if (link.kind !== 'vxlan' || socket?.setGro(link.name, link.hasGro)) continue;
    await programs.run(['ethtool', '-K', link.name, 'gro', link.hasGro ? 'on' : 'off']);
  }
};

/** Does what a plan says, up to the first thing that is refused: the rest needs it. */
const carryOut = async (access: Access, plan: LinkPlan): Promise<NetworkOutcome> => {
  if (plan.refusal !== undefined) return { changed: 0, refused: [plan.refusal] };
  let outcome = await runChanges(access, plan.clear);
  if (plan.make.length > 0) {
    let made = nothingDone;
    for (const way of plan.make) {
      made = await runChanges(access, [way]);
      if (made.changed > 0) break;
    }
    outcome = joined(outcome, made);
    if (made.changed === 0) return outcome;
  }
  return joined(outcome, await runChanges(access, plan.set));
};
