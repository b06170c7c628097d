/**
 * Steward is the agent's side of owning EIPs: it tells the thread of heartbeats what the API says and what lies ready in
 * the kernel, and keeps what the thread tells as part of the input of a pass. Nothing that has to be quick is done here:
 * the thread opens and shuts the gate itself. Until nodes have a key and an electorate there is no steward's work, and the
 * record decides.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../api/config.ts';
import { EgressError } from '../../api/error.ts';
import type { Ip } from '../../core/ip/index.ts';
import { distinctBits } from '../../core/marks.ts';
import type { Claim, NodeDesired } from '../../core/node/desired.ts';
import type { NodeOwnership } from '../../core/node/input.ts';
import { replyMark } from '../../core/node/numbers.ts';
import { remember } from '../../core/node/remember.ts';
import {
  type KnownOwner,
  ownershipPlanOf,
  ownersOf,
  type RecordedEip,
  type Roster,
  readyNodes,
  recordedEips,
} from '../../core/ownership/planned.ts';
import type { Electorate, Held, OwnershipPlan } from '../../core/ownership/port.ts';
import type { TunnelView } from '../../core/view.ts';
import type { Gate } from '../../dataplane/gate/gate.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { OwnershipFacts } from '../gather.ts';
import type { ReadyEips } from '../heartbeat/grip.ts';
import type { Heartbeat, HeartbeatHooks, Tidings } from '../heartbeat/heartbeat.ts';
import type { ThreadData } from '../heartbeat/thread.ts';
import type { UplinkPlace } from '../heartbeat/uplink.ts';
import type { Mirroring } from '../mirror/mirroring.ts';
import { mirrorPlanOf } from '../mirror/plan.ts';
import { isSameMap, isSameSet } from './same.ts';

/** Starts the thread. */
export type StartHeartbeat = (data: ThreadData, hooks: HeartbeatHooks) => Omit<Heartbeat, 'listening'>;

/** What the thread tells that is for others than the steward. */
export type Happening = Exclude<Tidings, { readonly kind: 'hold' | 'owner' | 'renew' | 'announce' | 'refused' }>;

export interface StewardDeps {
  readonly node: string;
  readonly config: { readonly current: Config };
  readonly facts: () => OwnershipFacts;
  /** The keys that agents share, the present one first; none until they were read. */
  readonly keys: () => readonly Uint8Array[];
  readonly gate: Gate;
  readonly firstSignature: number | undefined;
  readonly startHeartbeat: StartHeartbeat;
  readonly mirroring: Pick<Mirroring, 'set' | 'close'>;
  readonly clock: Clock;
  readonly log: Log;
  /** `ownership` has changed, and with it perhaps the owner of an EIP. */
  readonly onChange: () => void;
  readonly onHappening: (happening: Happening) => void;
}

/** A gate that cannot be made, or a thread that failed, is tried again after this long. */
const againMs = 5_000;

export class Steward {
  readonly #deps: StewardDeps;
  readonly #recordedIn = remember(recordedEips, isSameMap(isSameRecord));
  readonly #readyIn = remember(readyNodes, isSameSet);
  readonly #nodesIn = remember((tunnels: readonly TunnelView[]) => tunnels.map(({ node }) => node), isDeepStrictEqual);
  readonly #rostersIn = remember((rosters: readonly Roster[]) => rosters, isDeepStrictEqual);
  readonly #planOf = remember(ownershipPlanOf);
  readonly #bystandingIn = remember(bystandingOf);
  readonly #standbysIn = remember(standbysOf, isSameSet);
  readonly #gatewaysIn = remember(({ gateways }: OwnershipPlan) => new Set(gateways), isSameSet);
  readonly #ownersIn = remember(ownersOf, isSameMap(Object.is));
  readonly #addressesIn = remember(addressesOf, isSameMap(Object.is));
  #isOn = false;
  #retryAtMs = -Infinity;
  #electorate: Electorate | undefined;
  #holds: ReadonlyMap<Ip, Held> = new Map();
  #told: ReadonlyMap<Ip, KnownOwner> = new Map();
  #heartbeat: ReturnType<StartHeartbeat> | undefined;
  #running: ThreadData | undefined;
  /** What the thread was told last. */
  #sent: Sent = nothingSent;
  #isClosed = false;

  constructor(deps: StewardDeps) {
    this.#deps = deps;
  }

  /** Who owns what, for a NodeInput; undefined while the record decides. Parts keep their identity while they say the same. */
  ownership(): NodeOwnership | undefined {
    const plan = this.#plan();
    if (!this.#isOn || plan === undefined) return undefined;
    const { tunnels } = this.#deps.facts();
    return {
      owners: this.#ownersIn(this.#recorded(), this.#told, tunnels),
      holds: this.#holds,
      standbys: this.#standbysIn(plan, this.#deps.node),
      gateways: this.#gatewaysIn(plan),
    };
  }

  /** The electorate that this node goes by, if it has a part in it: for the report. */
  electorate(): Electorate | undefined {
    const { node } = this.#deps;
    const plan = this.#sent.plan;
    if (plan === undefined || this.#heartbeat === undefined) return undefined;
    const isMember = plan.gateways.includes(node) || plan.electorate.voters.includes(node);
    return isMember ? plan.electorate : undefined;
  }

  /**
   * Begins to agree with other nodes as soon as that can be: makes the gate, and holds what this node holds. `found` are the
   * EIPs on this node when nodes did not agree before. Called before each pass; rejects only for bugs.
   */
  async begin(found: ReadonlySet<Ip>): Promise<void> {
    const { gate, clock, log, keys, node } = this.#deps;
    if (this.#isOn || this.#plan() === undefined || keys().length === 0 || clock.monotonicMs() < this.#retryAtMs)
      return;
    try {
      const inKernel = await gate.read();
      await gate.prepare();
      const recorded = this.#recorded();
      const held: Held[] = [];
      for (const [eip, record] of recorded) {
        const known = inKernel?.find(({ ip }) => ip === eip);
        const isOurs = inKernel === undefined ? found.has(eip) && record.node === node : known !== undefined;
        if (isOurs) held.push({ eip, epoch: known?.epoch ?? record.epoch, mode: 'owned' });
      }
      this.#holds = new Map(held.map((one) => [one.eip, one]));
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
    const plan = this.#plan();
    if (!this.#isOn || this.#isClosed || plan === undefined) return;
    const hasTunnel = desired.network.links.some(({ kind }) => kind === 'vxlan');
    const data = hasTunnel ? this.#threadData() : undefined;
    if (data === undefined) return;
    if (!isDeepStrictEqual(this.#running, data)) this.#start(data);
    const heartbeat = this.#heartbeat;
    if (heartbeat === undefined) return;
    const addresses = this.#addressesIn(this.#deps.facts().tunnels);
    const ready = readyOf(this.#recorded(), desired);
    const isGateway = plan.gateways.includes(this.#deps.node);
    const place = isGateway ? uplink : undefined;
    const sent = this.#sent;
    const isMember = isGateway || plan.electorate.voters.includes(this.#deps.node);
    const told = isMember ? plan : this.#bystandingIn(plan.electorate);
    this.#sent = { addresses, ready, plan: told, uplink: place };
    if (addresses !== sent.addresses) heartbeat.setAddresses(addresses);
    if (!isDeepStrictEqual(ready, sent.ready)) heartbeat.setReady(ready);
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
    await Promise.all([this.#heartbeat?.close(), this.#deps.mirroring.close()]);
    this.#heartbeat = undefined;
  }

  #recorded(): ReadonlyMap<Ip, RecordedEip> {
    return this.#recordedIn(this.#deps.facts().policies);
  }

  #plan(): OwnershipPlan | undefined {
    const { rosters, tunnels, electorate } = this.#deps.facts();
    // An electorate that was taken away by mistake still holds: others may go by it.
    if (!isDeepStrictEqual(electorate ?? this.#electorate, this.#electorate)) this.#electorate = electorate;
    if (this.#electorate === undefined) return undefined;
    const nodes = this.#nodesIn(tunnels);
    return this.#planOf(this.#electorate, this.#rostersIn(rosters), nodes, this.#readyIn(tunnels), this.#recorded());
  }

  #threadData(): ThreadData | undefined {
    const { node, config, keys, facts, firstSignature } = this.#deps;
    const { failover } = config.current.feature;
    const address = addressesOf(facts().tunnels).get(node);
    const [key, ...previous] = keys();
    if (address === undefined || key === undefined) return undefined;
    const { heartbeatMilliseconds: heartbeatMs, heartbeatCount, graceSeconds } = failover;
    return {
      node,
      address,
      port: failover.port,
      keys: [key, ...previous],
      timing: { heartbeatMs, heartbeatCount, graceMs: graceSeconds * 1_000 },
      held: [],
      firstSignature,
    };
  }

  #start(data: ThreadData): void {
    const { clock, log, startHeartbeat, onChange } = this.#deps;
    if (clock.monotonicMs() < this.#retryAtMs) return;
    // Not waited for: a port that is still held makes the new thread fail, and that is tried again.
    void this.#heartbeat?.close();
    this.#running = data;
    this.#sent = nothingSent;
    const heartbeat = startHeartbeat(
      { ...data, held: [...this.#holds.values()] },
      {
        told: (tidings) => {
          if (heartbeat === this.#heartbeat) this.#take(tidings);
        },
        failed: (error) => {
          if (heartbeat !== this.#heartbeat) return;
          this.#heartbeat = undefined;
          this.#running = undefined;
          this.#retryAtMs = clock.monotonicMs() + againMs;
          clock.after(againMs, onChange);
          log.warn({ component: 'ownership' }, `the thread of heartbeats has ended: ${error.message}`);
        },
      },
    );
    this.#heartbeat = heartbeat;
    log.info({ component: 'ownership' }, `heartbeats on ${data.address} port ${data.port}`);
  }

  #take(tidings: Tidings): void {
    const { node, log, gate, onChange, onHappening } = this.#deps;
    switch (tidings.kind) {
      case 'hold': {
        this.#holds = new Map(tidings.held.map((one) => [one.eip, one]));
        for (const { eip, epoch, mode } of tidings.held) if (mode === 'owned') this.#note(eip, { node, epoch });
        // Before a pass: connections that it forgets because their EIP was let go are not over.
        this.#mirror();
        onChange();
        break;
      }
      case 'owner':
        this.#note(tidings.eip, tidings);
        onChange();
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
      case 'renew':
      case 'announce':
        break;
      default:
        onHappening(tidings);
    }
  }

  #note(eip: Ip, { node, epoch }: KnownOwner): void {
    if (epoch < (this.#told.get(eip)?.epoch ?? 0)) return;
    // What is no longer recorded is forgotten here, so that it does not pile up.
    const recorded = this.#recorded();
    const kept = [...this.#told].filter(([known]) => known !== eip && recorded.has(known));
    this.#told = new Map([...kept, [eip, { node, epoch }]]);
  }

  /** Tells the mirror what this node owns and who follows. */
  #mirror(): void {
    const { node, facts, mirroring } = this.#deps;
    const { plan, addresses } = this.#sent;
    const [data, taker] = [this.#running, this.#heartbeat];
    if (plan === undefined || data === undefined || taker === undefined) return;
    if (!plan.gateways.includes(node)) {
      mirroring.set(undefined);
      return;
    }
    const { rosters, tunnels } = facts();
    const bits = distinctBits(tunnels.find((tunnel) => tunnel.node === node)?.recorded.mark ?? '');
    const replies = bits === undefined ? undefined : replyMark(bits);
    const known = { node, holds: this.#holds, plan, recorded: this.#recorded(), rosters, addresses };
    const { address, port, keys } = data;
    mirroring.set({
      data: { node, address, port: port + 1, keys },
      plan: mirrorPlanOf({ ...known, replyMark: replies }),
      taker,
    });
  }

  #hold(): void {
    const holds = [...this.#holds.values()].flatMap(({ eip, epoch, mode }) => {
      const { ipv4, ipv6 } = this.#recorded().get(eip)?.eip ?? { ipv4: undefined, ipv6: undefined };
      return [ipv4, ipv6].filter((ip) => ip !== undefined).map((ip) => ({ ip, epoch, isAnswered: mode === 'owned' }));
    });
    // Without a main table there is nothing to hold in it yet; whoever makes it calls again.
    this.#deps.gate.hold(holds, this.#deps.config.current.feature.failover.graceSeconds * 900);
  }
}

interface Sent {
  readonly addresses: ReadonlyMap<string, string>;
  readonly ready: ReadyEips;
  readonly plan: OwnershipPlan | undefined;
  readonly uplink: UplinkPlace | undefined;
}

const nothingSent: Sent = { addresses: new Map(), ready: new Map(), plan: undefined, uplink: undefined };

const isSameRecord = (a: RecordedEip, b: RecordedEip): boolean =>
  a.node === b.node && a.epoch === b.epoch && a.eip.ipv4 === b.eip.ipv4 && a.eip.ipv6 === b.eip.ipv6;

/** All that a node needs to know which only wants to hear who owns: then it watches nobody, and nobody waits for it. */
const bystandingOf = (electorate: Electorate): OwnershipPlan => ({ electorate, gateways: [], nodes: [], eips: [] });

const standbysOf = ({ eips }: OwnershipPlan, node: string): ReadonlySet<Ip> =>
  new Set(eips.filter(({ candidates }) => candidates.includes(node)).map(({ eip }) => eip));

/** The tunnel addresses of nodes, of the one family that all of them have: IPv4 where it is turned on. */
const addressesOf = (tunnels: readonly TunnelView[]): ReadonlyMap<string, string> => {
  const addresses = new Map<string, string>();
  for (const { node, recorded } of tunnels) {
    const address = recorded.ipv4 ?? recorded.ipv6;
    if (address !== undefined) addresses.set(node, address);
  }
  return addresses;
};

/** The EIPs that lie ready, by the address that stands for each. */
const readyOf = (recorded: ReadonlyMap<Ip, RecordedEip>, desired: NodeDesired): ReadyEips => {
  const { claims, expected, standbys } = desired;
  const claimByIp = new Map([...claims, ...expected, ...standbys].map((claim) => [claim.ip, claim]));
  const ready = new Map<Ip, readonly Claim[]>();
  for (const [key, { eip }] of recorded) {
    const own = [eip.ipv4, eip.ipv6].map((ip) => ip && claimByIp.get(ip)).filter((claim) => claim !== undefined);
    if (own.length > 0) ready.set(key, own);
  }
  return ready;
};
