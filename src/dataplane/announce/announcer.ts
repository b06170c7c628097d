/**
 * The announcer tells the network which EIPs this node has, and asks it whether somebody else has one. It acts by
 * itself: the first announcement leaves before `apply` returns, without starting a program, because at a take-over every
 * millisecond until then is an outage.
 */
import { type Finding, finding, listed } from '../../core/cluster/finding.ts';
import { familyOf, type Ip } from '../../core/ip/index.ts';
import type { Claim } from '../../core/node/desired.ts';
import type { MonotonicTimers } from '../timers.ts';
import { announcements, probe as probeFrame } from './frames.ts';
import type { OpenPacketSocket, SocketRefusal } from './packet-socket.ts';
import { Ports, type PortUser } from './ports.ts';

/** Tells and asks the network who has an EIP. */
export interface Announcer {
  /**
   * Sets which EIPs are announced, on which interfaces. What is new is announced at once and again after 1 and 3
   * seconds; what was given before is left alone, unless it failed. Returns the EIPs that no interface announces.
   */
  apply(claims: readonly Claim[]): AnnounceOutcome;
  /** Announces those of these EIPs that are announced anew, at once and again after 1 and 3 seconds; it costs nothing for the others. */
  repeat(claims: readonly Claim[]): void;
  /**
   * Asks twice within the wait whether another machine has the EIP. The first that answers, else undefined. A machine on
   * the segment answers within a millisecond. An interface that cannot be used is passed over: nothing can be claimed
   * on it either.
   */
  probe(claim: Claim, waitMs: number): Promise<AddressHolder | undefined>;
  /** Stops at once; a probe that still waits ends as if nobody had answered. May be called twice. */
  close(): void;
}

/** Another machine that has an address. */
export interface AddressHolder {
  readonly mac: string;
  /** The interface of this node on which it was heard. */
  readonly interface: string;
}

export interface AnnounceOutcome {
  readonly refused: readonly { readonly ip: Ip; readonly finding: Finding }[];
}

export interface AnnouncerDeps {
  readonly open: OpenPacketSocket;
  readonly clock: MonotonicTimers;
  /**
   * Another machine claims an EIP that was announced in the last seconds. Once for each EIP, interface and machine; when the EIP
   * is announced anew, again, but not within a second. Absent where a ConflictListener listens.
   */
  readonly onConflict?: (ip: Ip, owner: AddressHolder) => void;
  /**
   * Whether a MAC address is one of this machine, besides those of the interfaces in use. Where two interfaces are on one
   * segment, the kernel answers on the one what was asked on the other.
   */
  readonly isOwn?: (mac: string) => boolean;
}

// After each round of announcements, how long until the next; after the last, how long claims of others are heard.
const PAUSES_MS = [1000, 2000, 1000] as const;
// Frames for so many EIPs leave at once: the kernel takes 10 to 20 microseconds for each. After a pause for what else the thread has to
// do, which is a heartbeat above all, come the next.
const AT_ONCE = 100;
const BETWEEN_MS = 1;
// A round that comes so late was due while this process stood still. Another machine may have the EIP by now, and whoever called
// `apply` is about to learn it: the round waits, and is dropped with the claim.
const STALE_MS = 250;
const RECOVERY_MS = 1000;
// Whoever hears of a conflict may announce anew. If the other machine does the same, and each frame were a conflict, two frames of the
// one would bring four of the other, and so on: both would do nothing else any more (RFC 5227, section 2.4).
const DEFENCE_MS = 1000;
const PROBE_READ_MS = 2;
const ANNOUNCE_READ_MS = 100;

interface Probe extends PortUser {
  readonly ip: Ip;
  readonly end: (owner: AddressHolder | undefined) => void;
}

/** An EIP on one interface. */
interface Announcement {
  readonly ip: Ip;
  readonly interfaceName: string;
  /** The rounds that it takes part in; undefined when they are over. */
  rounds: PortUser | undefined;
  failure: SocketRefusal | undefined;
  /** MAC addresses that were told to onConflict. */
  readonly rivals: Set<string>;
}

/** Makes an announcer. With nothing new to say and nothing to ask it is idle: no socket, no timer. */
export const createAnnouncer = ({
  open,
  clock,
  onConflict = () => {},
  isOwn = () => false,
}: AnnouncerDeps): Announcer => {
  /** By EIP and interface. */
  const announced = new Map<string, Announcement>();
  const probes = new Set<Probe>();
  const timers = new Set<() => void>();
  /** By EIP, interface and MAC address: when a conflict was told. */
  const toldAtMs = new Map<string, number>();

  /** Whether a conflict was told a moment ago. */
  const wasTold = (rival: string): boolean => {
    const nowMs = clock.monotonicMs();
    for (const [other, atMs] of toldAtMs) if (nowMs - atMs >= DEFENCE_MS) toldAtMs.delete(other);
    return toldAtMs.has(rival);
  };

  const after = (delayMs: number, callback: () => void): void => {
    const cancel = clock.after(delayMs, () => {
      timers.delete(cancel);
      callback();
    });
    timers.add(cancel);
  };

  const ports = new Ports({
    open,
    clock,
    onHeard: ({ ip, mac }, interfaceName) => {
      const owner = { mac, interface: interfaceName };
      const asking = [...probes].filter((probe) => probe.ip === ip);
      const key = keyOf(ip, interfaceName);
      const ours = announced.get(key);
      const rival = `${key} ${mac}`;
      const isNews = ours?.rounds !== undefined && !ours.rivals.has(mac) && !wasTold(rival);
      if ((asking.length === 0 && !isNews) || isOwn(mac)) return;
      for (const probe of asking) probe.end(owner);
      if (!isNews) return;
      ours.rivals.add(mac);
      toldAtMs.set(rival, clock.monotonicMs());
      onConflict(ip, owner);
    },
  });

  /** Announces at once and again after each pause; whoever is no longer wanted drops out. */
  const startRounds = (all: readonly Announcement[]): void => {
    const rounds: PortUser = { readEveryMs: ANNOUNCE_READ_MS };
    for (const member of all) member.rounds = rounds;
    const run = (round: number): void => {
      const pauseMs = PAUSES_MS[round];
      const members = all.filter((member) => member.rounds === rounds);
      if (pauseMs === undefined || members.length === 0) {
        for (const member of members) member.rounds = undefined;
        ports.leave(rounds);
        return;
      }
      const sendFrom = (start: number): void => {
        for (const member of members.slice(start, start + AT_ONCE)) {
          const { ip, interfaceName } = member;
          if (member.rounds !== rounds) continue;
          member.failure = ports.send(rounds, { interfaceName, family: familyOf(ip) }, (mac) => announcements(ip, mac));
        }
        if (start + AT_ONCE >= members.length) return;
        const dueMs = clock.monotonicMs() + BETWEEN_MS;
        after(BETWEEN_MS, () => {
          if (clock.monotonicMs() <= dueMs + STALE_MS) sendFrom(start + AT_ONCE);
        });
      };
      sendFrom(0);
      later(round + 1, pauseMs);
    };
    const later = (round: number, pauseMs: number): void => {
      const dueMs = clock.monotonicMs() + pauseMs;
      after(pauseMs, () => (clock.monotonicMs() > dueMs + STALE_MS ? later(round, RECOVERY_MS) : run(round)));
    };
    run(0);
  };

  return {
    apply: (claims) => {
      const wanted = new Map(
        claims.flatMap(({ ip, interfaces }) =>
          interfaces.map((interfaceName) => [keyOf(ip, interfaceName), { ip, interfaceName }] as const),
        ),
      );
      for (const [key, announcement] of announced) {
        if (wanted.has(key)) continue;
        announcement.rounds = undefined;
        announced.delete(key);
      }
      const fresh: Announcement[] = [];
      for (const [key, place] of wanted) {
        const known = announced.get(key);
        if (known !== undefined && (known.failure === undefined || known.rounds !== undefined)) continue;
        const announcement = { ...place, rounds: undefined, failure: undefined, rivals: new Set<string>() };
        announced.set(key, announcement);
        fresh.push(announcement);
      }
      if (fresh.length > 0) startRounds(fresh);
      const failureOn = (ip: Ip, interfaceName: string) => announced.get(keyOf(ip, interfaceName))?.failure;
      return { refused: claims.flatMap((claim) => refusedClaim(claim, failureOn)) };
    },

    repeat: (claims) => {
      const again: Announcement[] = [];
      for (const { ip, interfaces } of claims) {
        for (const interfaceName of interfaces) {
          const known = announced.get(keyOf(ip, interfaceName));
          if (known === undefined) continue;
          known.rivals.clear();
          again.push(known);
        }
      }
      if (again.length > 0) startRounds(again);
    },

    probe: ({ ip, interfaces }, waitMs) =>
      new Promise((resolve) => {
        const probe: Probe = {
          ip,
          readEveryMs: PROBE_READ_MS,
          end: (owner) => {
            probes.delete(probe);
            ports.leave(probe);
            resolve(owner);
          },
        };
        const ask = (): void => {
          for (const interfaceName of interfaces) {
            ports.send(probe, { interfaceName, family: familyOf(ip) }, (mac) => [probeFrame(ip, mac)]);
          }
        };
        probes.add(probe);
        ask();
        after(waitMs / 2, () => {
          if (probes.has(probe)) ask();
        });
        after(waitMs, () => {
          // An answer that came while the process was busy still counts.
          ports.read();
          if (probes.has(probe)) probe.end(undefined);
        });
      }),

    close: () => {
      for (const cancel of timers) cancel();
      timers.clear();
      for (const probe of probes) probe.end(undefined);
      announced.clear();
      ports.close();
    },
  };
};

const keyOf = (ip: Ip, interfaceName: string): string => `${ip} ${interfaceName}`;

/** The claim with the reason, if it is announced nowhere. */
const refusedClaim = (
  { ip, interfaces }: Claim,
  failureOn: (ip: Ip, interfaceName: string) => SocketRefusal | undefined,
): AnnounceOutcome['refused'] => {
  const failures = interfaces.flatMap((name) => {
    const failure = failureOn(ip, name);
    return failure === undefined ? [] : [{ name, ...failure }];
  });
  if (failures.length < interfaces.length) return [];
  const reason = failures.some(({ kind }) => kind === 'forbidden') ? 'CapabilityMissing' : 'AnnounceFailed';
  const why = failures.length === 0 ? 'there is none' : listed(failures.map(({ name, why }) => `${name}: ${why}`));
  return [{ ip, finding: finding(reason, `EIP ${ip} is announced on no interface (${why}).`) }];
};
