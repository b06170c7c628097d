/**
 * NodeEvents is what the agent tells people about its node, as log lines, events at its EgressTunnel and counts. Numbers that
 * change are in the log only, so that repeats of an event are one event that counts.
 */
import { resourceOf } from '../../api/kinds.ts';
import type { Reason } from '../../api/reasons.ts';
import { type Finding, finding } from '../../core/cluster/finding.ts';
import type { EipConflict } from '../../core/cluster/view.ts';
import { conflictFinding } from '../../core/gateways/conflicts.ts';
import type { Ip } from '../../core/ip/index.ts';
import type { NodeProblem } from '../../core/node/desired.ts';
import { type UplinkLoss, uplinkFinding } from '../../core/node/uplink.ts';
import { detectionFinding } from '../../core/tunnels/detection.ts';
import type { AddressHolder } from '../../dataplane/announce/announcer.ts';
import type { EventRecorder } from '../../runtime/kube/event-recorder.ts';
import { apiVersionOf } from '../../runtime/kube/resource.ts';
import type { Clock } from '../../runtime/process/clock.ts';
import type { Log } from '../../runtime/process/log.ts';
import type { OwnershipEvent } from '../failover/failover-client.ts';
import type { KernelPart } from '../kernel/kernel.ts';
import { Digest, type Many } from './digest.ts';
import type { AgentMetrics } from './metrics.ts';

export interface NodeEventsDeps {
  readonly node: string;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Pick<AgentMetrics, 'applier' | 'conflict' | 'ownership'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
}

/** An EIP or a node group was taken over, or let go; how people call it, undefined for a group that has ended. */
interface HandOver {
  readonly event: OwnershipEvent;
  readonly name: string | undefined;
}

export class NodeEvents {
  readonly #deps: NodeEventsDeps;
  readonly #handOvers: Digest<HandOver>;

  constructor(deps: NodeEventsDeps) {
    this.#deps = deps;
    this.#handOvers = new Digest({
      clock: deps.clock,
      kindOf: ({ event: { reason, cause, other = '' } }) => `${reason} ${cause} ${other}`,
      tellOne: (one) => this.#handedOver(one),
      tellMany: (many) => this.#handedOverMany(many),
    });
  }

  /** Tells what is left to tell. */
  close(): void {
    this.#handOvers.close();
  }

  /** Another machine claims an EIP that this node holds. A fact to look into, not a reason to give the EIP up. */
  claimedToo(ip: Ip, { mac, interface: name }: AddressHolder): void {
    const { node, log } = this.#deps;
    const found = finding('EipInUse', `${ip} is held by node ${node}, but ${mac} on ${name} claims it too.`);
    log.warn({ component: 'claims', eip: ip, reason: found.reason }, found.sentence);
    this.inUse(ip, found);
  }

  /** Other machines claim EIPs of this node than before. `isHeld`: whether this node still answers for an EIP. */
  conflicts(now: readonly EipConflict[], before: readonly EipConflict[], isHeld: (ip: Ip) => boolean): void {
    const { node, log } = this.#deps;
    const has = (list: readonly EipConflict[], { ip, mac }: EipConflict): boolean =>
      list.some((one) => one.ip === ip && one.mac === mac);
    for (const conflict of now.filter((one) => !has(before, one))) {
      const found = conflictFinding(node, conflict);
      log.warn({ component: 'conflicts', eip: conflict.ip, reason: found.reason }, found.sentence);
      this.inUse(conflict.ip, found);
    }
    for (const conflict of before.filter((one) => !has(now, one))) {
      const { ip, mac } = conflict;
      // Of an EIP that went elsewhere the node that has it tells.
      if (!isHeld(ip)) continue;
      const { reason, sentence } = finding('EipConflictEnded', `${mac} no longer claims EIP ${ip} of node ${node}.`);
      log.info({ component: 'conflicts', eip: ip, reason }, sentence);
      this.#tell('Normal', reason, 'Claim', sentence);
    }
  }

  /** An EIP of this node is in use elsewhere. */
  inUse(ip: Ip, { reason, sentence }: Finding): void {
    this.#deps.metrics.conflict(ip);
    this.#warn(reason, 'Claim', sentence);
  }

  /** What somebody else had changed was put back. */
  repaired(part: KernelPart, count: number): void {
    const { metrics, log } = this.#deps;
    metrics.applier.repaired(part, count);
    this.#warn('DriftRepaired', 'Repair', repairedNote[part]);
    log.warn({ component: part, reason: 'DriftRepaired', count }, repairedNote[part]);
  }

  /** Losses are noticed only after so long, or as quickly as configured again. */
  detection(detectionMs: number | undefined): void {
    const { node, log } = this.#deps;
    if (detectionMs === undefined)
      log.info({ component: 'ownership' }, 'losses are noticed as quickly as configured again');
    else {
      const { reason, sentence } = detectionFinding(node, detectionMs);
      log.warn({ component: 'ownership', reason }, sentence);
    }
  }

  /** Other families are lost on interfaces that EIPs need than before. */
  uplink(now: readonly UplinkLoss[], before: readonly UplinkLoss[]): void {
    const { node, log } = this.#deps;
    const has = (list: readonly UplinkLoss[], loss: UplinkLoss): boolean =>
      list.some((one) => one.interface === loss.interface && one.family === loss.family);
    for (const loss of now.filter((one) => !has(before, one))) {
      const { reason, sentence } = uplinkFinding(node, loss);
      log.warn({ component: 'uplink', reason }, sentence);
      this.#warn(reason, 'Watch', sentence);
    }
    for (const { interface: name, family } of before.filter((one) => !has(now, one))) {
      const { reason, sentence } = finding(
        'UplinkRestored',
        `Node ${node} reaches the outside in IPv${family} on ${name} again.`,
      );
      log.info({ component: 'uplink', reason }, sentence);
      this.#tell('Normal', reason, 'Watch', sentence);
    }
  }

  /** EIPs or node groups were taken over, or let go: few are told one by one, and many together. */
  ownership(events: readonly OwnershipEvent[], nameOf: (eip: Ip) => string | undefined): void {
    for (const event of events) {
      this.#deps.metrics.ownership(event);
      this.#handOvers.add({ event, name: nameOf(event.eip) });
    }
  }

  /** What stands in the way after a pass; what did so before is not told again. */
  problems(now: readonly NodeProblem[], before: readonly NodeProblem[]): void {
    const told = new Set(before.map(({ finding }) => finding.sentence));
    for (const { finding, policy } of now) {
      const { reason, sentence } = finding;
      if (told.has(sentence)) continue;
      this.#deps.log.warn({ component: 'node', reason, ...(policy === undefined ? {} : { policy }) }, sentence);
    }
  }

  #handedOver({ event, name }: HandOver): void {
    const { reason, cause, eip, epoch, took } = event;
    const note = handOverNote(event, name ?? 'a node group that has ended', this.#deps.node);
    const ms = took === undefined ? {} : { ms: Math.round(took.detectionMs + took.claimMs) };
    this.#deps.log.info({ component: 'ownership', reason, eip, ...ms }, `${note.slice(0, -1)}, epoch ${epoch}.`);
    if (name !== undefined) this.#warnOfHandOver(reason, cause, note);
  }

  #handedOverMany({ count, first }: Many<HandOver>): void {
    const [one] = first;
    if (one === undefined) return;
    const { reason, cause } = one.event;
    const names = first.map(({ name = 'a node group that has ended' }) => name);
    const note = `${handOverNote(one.event, `${count} more EIPs`, this.#deps.node).slice(0, -1)}: ${names.join(', ')} and others.`;
    this.#deps.log.info({ component: 'ownership', reason, count }, note);
    this.#warnOfHandOver(reason, cause, note);
  }

  /** What a node owns from the start on is nothing to tell people about, nor that the record has followed a take-over. */
  #warnOfHandOver(reason: OwnershipEvent['reason'], cause: OwnershipEvent['cause'], note: string): void {
    if (cause !== 'start') this.#warn(reason, reason === 'EipTakenOver' ? 'TakeOver' : 'Yield', note);
  }

  #warn(reason: Reason, action: string, note: string): void {
    this.#tell('Warning', reason, action, note);
  }

  #tell(type: 'Normal' | 'Warning', reason: Reason, action: string, note: string): void {
    const tunnel = resourceOf('EgressTunnel');
    const regarding = { apiVersion: apiVersionOf(tunnel), kind: tunnel.kind, name: this.#deps.node };
    this.#deps.events.record({ regarding, type, reason, action, note });
  }
}

const handOverNote = ({ reason, cause, other }: OwnershipEvent, name: string, node: string): string => {
  const whom = other === undefined ? '' : ` (${reason === 'EipTakenOver' ? 'before' : 'next'}: ${other})`;
  return reason === 'EipTakenOver'
    ? `Node ${node} owns ${name} from now on: ${cause}${whom}.`
    : `Node ${node} has let ${name} go: ${cause}${whom}.`;
};

const repairedNote: Readonly<Record<KernelPart, string>> = {
  table: 'Somebody else had changed the table inet sallyport; it was put back.',
  network: 'Somebody else had changed devices, addresses, rules or routes of ours; they were put back.',
  sysctls: 'Somebody else had changed kernel settings that are needed; they were put back.',
};
