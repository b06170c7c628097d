/**
 * FailoverClient is the agent's side of owning EIPs: it tells the thread of heartbeats what the API says and what lies ready in
 * the kernel, and keeps what the thread tells as part of the input of a pass. Nothing that has to be quick is done here:
 * the thread opens and shuts the gate itself. Until nodes have a key and an electorate there is no failover client's work, and the
 * record decides.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../api/config.ts';
import { EgressError } from '../../api/error.ts';
import type { Electorate } from '../../core/cluster/view.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { Claim, NodeDesired } from '../../core/node/desired.ts';
import type { NodeOwnership } from '../../core/node/input.ts';
import { replyMark } from '../../core/node/numbers.ts';
import type { UplinkPlace } from '../../core/node/uplink.ts';
import type { EipHold, OwnershipPlan } from '../../core/ownership/port.ts';
import { type Timing, type TimingSettings, timingOf } from '../../core/ownership/timing.ts';
import { distinctBits } from '../../core/tunnels/marks.ts';
import type { Gate } from '../../dataplane/gate/gate.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { Hops, ReadyEips } from '../heartbeat/gate-controller.ts';
import type { Heartbeat, HeartbeatHooks, ThreadEvent } from '../heartbeat/heartbeat.ts';
import type { ThreadData } from '../heartbeat/thread.ts';
import type { OwnershipFacts } from '../inputs/gather.ts';
import type { MirrorSupervisor } from '../mirror/mirror-supervisor.ts';
import { mirrorPlanOf } from '../mirror/plan.ts';
import { OwnershipRecord, type ServedGroup } from './record.ts';
import { ToldOwners } from './told-owners.ts';

/** Starts the thread. */
export type StartHeartbeat = (data: ThreadData, hooks: HeartbeatHooks) => Pick<Heartbeat, keyof Heartbeat>;

/** EIPs were taken over, or let go. */
export type OwnershipEvent = Extract<ThreadEvent, { readonly kind: 'event' }>;

/** What the thread tells besides that is for others than the failover client. */
export type FailoverEvent = Extract<ThreadEvent, { readonly kind: 'tie' | 'conflicts' | 'uplink' | 'silence' }>;

export interface FailoverClientDeps {
  readonly node: string;
  readonly config: { readonly current: Config };
  readonly facts: () => OwnershipFacts;
  /** The keys that agents share, the present one first; none until they were read. */
  readonly keys: () => readonly Uint8Array[];
  readonly gate: Gate;
  readonly firstSignature: number | undefined;
  readonly startHeartbeat: StartHeartbeat;
  readonly mirrorSupervisor: Pick<MirrorSupervisor, 'set' | 'close'>;
  readonly clock: Clock;
  readonly log: Log;
  /** `ownership` has changed, and with it perhaps the owner of an EIP. */
  readonly onChange: () => void;
  /** `opened` has changed. */
  readonly onOpened: () => void;
  readonly onHappening: (happening: FailoverEvent) => void;
  /** All that came of one turn of the thread. */
  readonly onEvents: (events: readonly OwnershipEvent[]) => void;
}

/** A gate that cannot be made, or a thread that failed, is tried again after this long. */
const againMs = 5_000;

export class FailoverClient {
  readonly #deps: FailoverClientDeps;
  readonly #record: OwnershipRecord;
  /** When the last run of the thread had ended at the latest: that of an agent before this one when this one began. */
  #endedAtMs: number;
  #isOn = false;
  #retryAtMs = -Infinity;
  #holds: ReadonlyMap<Ip, EipHold> = new Map();
  /** Until when the kernel holds them; infinite when it holds nothing. */
  #heldUntilMs = Infinity;
  #opened: ReadonlySet<Ip> = new Set();
  readonly #told = new ToldOwners();
  #heartbeat: ReturnType<StartHeartbeat> | undefined;
  #running: ThreadData | undefined;
  #isListening = false;
  /** What the thread was told last. */
  #sent: Sent = nothingSent;
  #isClosed = false;

  constructor(deps: FailoverClientDeps) {
    this.#deps = deps;
    this.#endedAtMs = deps.clock.monotonicMs();
    this.#record = new OwnershipRecord(deps.node, deps.facts);
  }

  /** Who owns what, for a NodeInput; undefined while the record decides. Parts keep their identity while they say the same. */
  ownership(): NodeOwnership | undefined {
    const record = this.#record;
    const plan = record.plan();
    if (!this.#isOn || plan === undefined) return undefined;
    this.#told.keepOnly(record.eips());
    return {
      owners: record.owners(this.#told.all),
      holds: this.#holds,
      standbys: record.standbys(plan),
      gateways: record.gateways(plan),
    };
  }

  /** The addresses for which the kernel answers, by the word of whoever opens the gate; undefined where there is no gate. */
  opened(): ReadonlySet<Ip> | undefined {
    return this.#isOn ? this.#opened : undefined;
  }

  /** The node groups that this node serves, as nodes have agreed. */
  nodeGroups(): readonly ServedGroup[] {
    return this.#isOn ? this.#record.groupsIn(this.#holds) : [];
  }

  /** How people call an EIP, or a node group; undefined for a group that has ended. */
  nameOf(eip: Ip): string | undefined {
    return this.#record.nameOf(eip);
  }

  /** Whether this node may own EIPs. */
  isGateway(): boolean {
    return this.#sent.plan?.gateways.includes(this.#deps.node) === true;
  }

  /** False while an EIP that is to be here by record, and lies ready or is being asked about, is not open yet: it is about to come. */
  isSettled(): boolean {
    if (!this.#isOn) return true;
    const { node } = this.#deps;
    const recorded = this.#record.eips();
    const isComing = ([eip, claims]: readonly [Ip, readonly Claim[]]): boolean =>
      recorded.get(eip)?.node === node && claims.some(({ ip }) => !this.#opened.has(ip));
    return !this.#sent.ready.entries().some(isComing) && !this.#sent.awaited.entries().some(isComing);
  }

  /** False while the thread has not yet come so far that it hears others: until then nobody would let go what this node holds. */
  isListening(): boolean {
    return this.#heartbeat === undefined || this.#isListening;
  }

  /** The electorate that this node goes by, if it has a part in it: for the report. */
  electorate(): Electorate | undefined {
    const plan = this.#sent.plan;
    if (plan === undefined || this.#heartbeat === undefined) return undefined;
    return this.#record.isMember(plan) ? plan.electorate : undefined;
  }

  /**
   * Begins to agree with other nodes as soon as that can be: makes the gate, and holds what this node holds. `found` are the
   * EIPs on this node when nodes did not agree before. Called before each pass; rejects only for bugs.
   */
  async begin(found: ReadonlySet<Ip>): Promise<void> {
    const { gate, clock, log, keys, node } = this.#deps;
    if (this.#isOn || this.#record.plan() === undefined || keys().length === 0 || clock.monotonicMs() < this.#retryAtMs)
      return;
    try {
      const inKernel = await gate.read();
      await gate.prepare();
      const recorded = this.#record.eips();
      const held: EipHold[] = [];
      const knownByIp = new Map(inKernel?.map((known) => [known.ip, known]));
      for (const [eip, record] of recorded) {
        const known = knownByIp.get(eip);
        const isOurs = inKernel === undefined ? found.has(eip) && record.node === node : known !== undefined;
        if (isOurs) held.push({ eip, epoch: known?.epoch ?? record.epoch, mode: 'owned' });
      }
      this.#holds = new Map(held.map((one) => [one.eip, one]));
      // Not for longer than the kernel does: another node may own them by now, and nobody was asked yet.
      const leftMs = Math.min(this.#timing.leaseMs, ...(inKernel ?? []).map((known) => known.leftMs));
      this.#heldUntilMs = held.length > 0 ? clock.monotonicMs() + leftMs : Infinity;
      this.#opened = new Set(inKernel?.map(({ ip }) => ip) ?? held.flatMap(({ eip }) => this.#record.addressesOf(eip)));
      this.#isOn = true;
      this.renew();
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#retryAtMs = clock.monotonicMs() + againMs;
      log.warn({ component: 'ownership', reason: error.code }, `no gate, so that the record decides: ${error.message}`);
    }
  }

  /** The kernel holds what was desired: the thread learns what lies ready, and is started when it can be. */
  applied(desired: NodeDesired, uplink: UplinkPlace | undefined): void {
    const record = this.#record;
    const plan = record.plan();
    if (!this.#isOn || this.#isClosed || plan === undefined) return;
    const hasTunnel = desired.network.links.some(({ kind }) => kind === 'vxlan');
    const data = hasTunnel ? this.#threadData() : undefined;
    if (data === undefined) return;
    if (!isDeepStrictEqual(this.#running, data)) this.#start(data);
    const heartbeat = this.#heartbeat;
    if (heartbeat === undefined) return;
    const [addresses, hops, macs] = [record.addresses(), record.hops(), record.macs()];
    const [ready, awaited] = [record.ready(desired), record.awaited(desired)];
    const told = record.own(plan, this.#holds.size > 0);
    const place = told.gateways.includes(this.#deps.node) ? uplink : undefined;
    const sent = this.#sent;
    this.#sent = { addresses, hops, macs, ready, awaited, plan: told, uplink: place };
    const isSamePlaces = addresses === sent.addresses && hops === sent.hops && macs === sent.macs;
    if (!isSamePlaces) heartbeat.setAddresses(addresses, hops, macs);
    const isSame = isDeepStrictEqual(ready, sent.ready) && isDeepStrictEqual(awaited, sent.awaited);
    if (!isSame) heartbeat.setReady(ready, awaited);
    if (told !== sent.plan) heartbeat.take({ kind: 'plan', plan: told });
    if (!isDeepStrictEqual(place, sent.uplink)) heartbeat.setUplink(place);
    this.#mirror();
  }

  /** The table was replaced, and what the gate held in it is gone. */
  renew(): void {
    if (this.#heartbeat !== undefined) this.#heartbeat.renew();
    else if (this.#isOn) this.#hold();
  }

  /** The vote of the API server came or went. */
  vote(untilMs: number | undefined, epoch: number): void {
    this.#heartbeat?.vote(untilMs, epoch);
  }

  /** Ends the thread; the kernel holds what it holds until its lease is over. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#heartbeat?.close(), this.#deps.mirrorSupervisor.close()]);
    this.#heartbeat = undefined;
  }

  #threadData(): ThreadData | undefined {
    const { node, config, keys, firstSignature } = this.#deps;
    const address = this.#record.addresses().get(node);
    const [key, ...previous] = keys();
    if (address === undefined || key === undefined) return undefined;
    const { port } = config.current.feature.failover;
    const timing = this.#timingSettings;
    const nothing = { held: [], heldUntilMs: Infinity, promisedUntilMs: -Infinity };
    return { node, address, port, keys: [key, ...previous], timing, ...nothing, firstSignature };
  }

  get #timingSettings(): TimingSettings {
    const { heartbeatMilliseconds, heartbeatCount, graceSeconds } = this.#deps.config.current.feature.failover;
    return { heartbeatMs: heartbeatMilliseconds, heartbeatCount, graceMs: graceSeconds * 1_000 };
  }

  get #timing(): Timing {
    return timingOf(this.#timingSettings);
  }

  #start(data: ThreadData): void {
    const { clock, log, startHeartbeat, onChange } = this.#deps;
    if (clock.monotonicMs() < this.#retryAtMs) return;
    // Not waited for: a port that is still held makes the new thread fail, and that is tried again.
    if (this.#heartbeat !== undefined) this.#endedAtMs = clock.monotonicMs();
    void this.#heartbeat?.close();
    this.#deps.onHappening({ kind: 'conflicts', conflicts: [] });
    const { silenceMs, widestMs } = this.#timing;
    this.#deps.onHappening({ kind: 'silence', silenceMs, usualMs: silenceMs, widestMs });
    this.#deps.onHappening({ kind: 'uplink', losses: [] });
    this.#running = data;
    this.#sent = nothingSent;
    this.#isListening = false;
    // An agent that was stopped before it came so far holds nothing any more.
    if (clock.monotonicMs() >= this.#heldUntilMs) {
      this.#holds = new Map();
      this.#heldUntilMs = Infinity;
    }
    const promisedUntilMs = this.#endedAtMs + this.#timing.widestMs;
    const heartbeat = startHeartbeat(
      { ...data, held: [...this.#holds.values()], heldUntilMs: this.#heldUntilMs, promisedUntilMs },
      {
        told: (all) => {
          if (heartbeat === this.#heartbeat) this.#takeAll(all);
        },
        failed: (error) => {
          if (heartbeat !== this.#heartbeat) return;
          this.#heartbeat = undefined;
          this.#running = undefined;
          this.#endedAtMs = clock.monotonicMs();
          this.#retryAtMs = clock.monotonicMs() + againMs;
          clock.after(againMs, onChange);
          log.warn({ component: 'ownership' }, `the thread of heartbeats has ended: ${error.message}`);
        },
      },
    );
    this.#heartbeat = heartbeat;
    // One that fails is told by `failed`.
    const listens = (): void => {
      this.#isListening ||= heartbeat === this.#heartbeat;
    };
    heartbeat.listening().then(listens, () => {});
    log.info({ component: 'ownership' }, `heartbeats on ${data.address} port ${data.port}`);
  }

  /** What a thousand EIPs bring about is one change for a pass, one report and one list of events. */
  #takeAll(all: readonly ThreadEvent[]): void {
    const { onChange, onOpened, onEvents } = this.#deps;
    for (const tidings of all) this.#take(tidings);
    const kinds = new Set(all.map(({ kind }) => kind));
    const events = all.filter((tidings) => tidings.kind === 'event');
    if (events.length > 0) onEvents(events);
    // Before a pass: connections that it forgets because their EIP was let go are not over.
    if (kinds.has('hold')) this.#mirror();
    if (kinds.has('hold') || kinds.has('owner')) onChange();
    if (kinds.has('opened')) onOpened();
  }

  #take(tidings: ThreadEvent): void {
    const { node, log, gate, onHappening } = this.#deps;
    switch (tidings.kind) {
      case 'hold':
        this.#holds = new Map(tidings.held.map((one) => [one.eip, one]));
        for (const { eip, epoch, mode } of tidings.held) {
          if (mode === 'owned') this.#told.note(eip, { node, epoch });
        }
        break;
      case 'lease':
        this.#heldUntilMs = tidings.untilMs;
        break;
      case 'opened':
        this.#opened = new Set(tidings.ips);
        break;
      case 'owner':
        this.#told.note(tidings.eip, tidings);
        break;
      case 'refused':
        log.warn({ component: 'ownership', reason: 'NftRefused' }, `the gate is not as it should be: ${tidings.why}`);
        // Most likely somebody took a table away. The main one is mended by whoever watches it.
        gate.prepare().then(
          () => {
            gate.cover([...this.#sent.ready.values()].flatMap((claims) => claims.map(({ ip }) => ip)));
            this.renew();
          },
          () => {},
        );
        break;
      case 'event':
        break;
      default:
        onHappening(tidings);
    }
  }

  /** Tells the mirror what this node owns and who follows. */
  #mirror(): void {
    const { node, facts, mirrorSupervisor } = this.#deps;
    const { plan, addresses } = this.#sent;
    const [data, taker] = [this.#running, this.#heartbeat];
    if (plan === undefined || data === undefined || taker === undefined) return;
    if (!plan.gateways.includes(node)) {
      mirrorSupervisor.set(undefined);
      return;
    }
    const { rosters, tunnels } = facts();
    const bits = distinctBits(tunnels.find((tunnel) => tunnel.node === node)?.recorded.mark ?? '');
    const replies = bits === undefined ? undefined : replyMark(bits);
    const known = { node, holds: this.#holds, plan, recorded: this.#record.eips(), rosters, addresses };
    const { address, port, keys } = data;
    mirrorSupervisor.set({
      data: { node, address, port: port + 1, keys },
      plan: mirrorPlanOf({ ...known, replyMark: replies }),
      taker,
    });
  }

  #hold(): void {
    const leftMs = Math.min(this.#timing.leaseMs, this.#heldUntilMs - this.#deps.clock.monotonicMs());
    const holds = [...(leftMs > 0 ? this.#holds.values() : [])].flatMap(({ eip, epoch, mode }) => {
      return this.#record.addressesOf(eip).map((ip) => ({ ip, epoch, isAnswered: mode === 'owned' }));
    });
    // Without a main table there is nothing to hold in it yet; whoever makes it calls again.
    this.#deps.gate.hold(holds, leftMs);
  }
}

interface Sent {
  readonly addresses: ReadonlyMap<string, string>;
  readonly hops: Hops;
  readonly macs: ReadonlySet<string>;
  readonly ready: ReadyEips;
  readonly awaited: ReadyEips;
  readonly plan: OwnershipPlan | undefined;
  readonly uplink: UplinkPlace | undefined;
}

const nothingSent: Sent = {
  addresses: new Map(),
  hops: new Map(),
  macs: new Set(),
  ready: new Map(),
  awaited: new Map(),
  plan: undefined,
  uplink: undefined,
};
