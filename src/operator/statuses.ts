/** Statuses writes what became of the objects: only the leader does, and only what differs. */
import type { BCSEgressStatus } from '../api/bcs-egress.ts';
import type { BCSEgressControllerStatus } from '../api/bcs-egress-controller.ts';
import { type KindName, resourceOf } from '../api/kinds.ts';
import { operatorName } from '../api/names.ts';
import type { EgressStatusPlan } from '../core/proxy/status.ts';
import { conditionsOf, type Findings } from '../core/status/conditions.ts';
import { compareRevisions } from '../core/status/revision.ts';
import type { KubeClient } from '../runtime/kube/client.ts';
import type { EventRecorder } from '../runtime/kube/event-recorder.ts';
import { isSame } from '../runtime/kube/owned-status.ts';
import { apiVersionOf, type KubeObject } from '../runtime/kube/resource.ts';
import type { Clock } from '../runtime/process/clock.ts';
import type { CachedEgress, CachedProxy } from './inputs/caches.ts';

export interface StatusesDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Called when figures that were held back may be written: nothing else may ask for it, once they stay as they are. */
  readonly onDue: () => void;
}

/** Figures change with every connection; they are written at most this often. */
const figuresMs = 10_000;

interface Written<Status> {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly status: Status;
  readonly atMs: number;
}

export class Statuses {
  readonly #deps: StatusesDeps;
  /** kind and key -> our last write */
  readonly #written = new Map<string, Written<object>>();
  #isWaiting = false;

  constructor(deps: StatusesDeps) {
    this.#deps = deps;
  }

  /** The status as it is known best: what the cache has, or what we wrote if the cache lags behind. */
  latest<Status extends object>(
    kind: KindName,
    key: string,
    kept: { metadata: KubeObject['metadata']; status: Status | undefined },
  ): Status | undefined {
    const written = this.#written.get(`${kind} ${key}`);
    const { uid, resourceVersion = '0' } = kept.metadata;
    if (written === undefined || written.uid !== uid) return kept.status;
    // The map holds what this class has put in for the same kind.
    return compareRevisions(written.resourceVersion, resourceVersion) > 0 ? (written.status as Status) : kept.status;
  }

  /** Writes the status of a BCSEgress if it differs, and tells a change of state in an Event. */
  async egress(key: string, kept: CachedEgress, plan: EgressStatusPlan, signal: AbortSignal): Promise<void> {
    const before = this.latest('BCSEgress', key, kept);
    const status: BCSEgressStatus = { ...plan.fields, conditions: this.#conditions(plan.findings, kept, before) };
    if (!this.#isDue('BCSEgress', key, before, status)) return;
    await this.#write('BCSEgress', key, kept.metadata, status, signal);
    if (before?.state !== plan.state) this.#tell(key, kept, plan);
  }

  /** Writes the status of a BCSEgressController if it differs. */
  async proxy(
    key: string,
    kept: CachedProxy,
    fields: BCSEgressControllerStatus,
    findings: Findings,
    signal: AbortSignal,
  ): Promise<void> {
    const before = this.latest('BCSEgressController', key, kept);
    const status: BCSEgressControllerStatus = {
      ...fields,
      observedGeneration: kept.view.generation,
      conditions: this.#conditions(findings, kept, before),
    };
    if (before !== undefined && isSame(before, status)) return;
    await this.#write('BCSEgressController', key, kept.metadata, status, signal);
  }

  /** Forgets objects that are gone. */
  keepOnly(kind: KindName, keys: ReadonlySet<string>): void {
    for (const name of this.#written.keys()) {
      const [ofKind, key = ''] = name.split(' ');
      if (ofKind === kind && !keys.has(key)) this.#written.delete(name);
    }
  }

  #conditions(findings: Findings, { view }: CachedEgress | CachedProxy, before: BCSEgressStatus | undefined) {
    return conditionsOf(findings, view.generation, before?.conditions, this.#deps.clock.now());
  }

  #isDue(kind: KindName, key: string, before: BCSEgressStatus | undefined, status: BCSEgressStatus): boolean {
    if (before === undefined || !isSame(withoutFigures(before), withoutFigures(status))) return true;
    if (isSame(before, status)) return false;
    const written = this.#written.get(`${kind} ${key}`);
    const waitMs = written === undefined ? 0 : written.atMs + figuresMs - this.#deps.clock.monotonicMs();
    if (waitMs > 0) this.#askAgain(waitMs);
    return waitMs <= 0;
  }

  /** One timer for all objects: what is not due yet when it ends asks for the next. */
  #askAgain(waitMs: number): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#deps.clock.after(waitMs, () => {
      this.#isWaiting = false;
      this.#deps.onDue();
    });
  }

  async #write(
    kind: KindName,
    key: string,
    { name, namespace = '', uid = '' }: KubeObject['metadata'],
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock } = this.#deps;
    const object: KubeObject & { status: object } = { metadata: { name, namespace, uid }, status };
    const answer = await client.applyStatus(resourceOf(kind), object, { fieldManager: operatorName, signal });
    const { resourceVersion = '0' } = answer.metadata;
    this.#written.set(`${kind} ${key}`, { uid, resourceVersion, status, atMs: clock.monotonicMs() });
  }

  #tell(key: string, { metadata }: CachedEgress, { state, fields, findings }: EgressStatusPlan): void {
    if (state === 'Pending') return;
    const { name, namespace, uid } = metadata;
    const resource = resourceOf('BCSEgress');
    const worst = [findings.Accepted, findings.Programmed, findings.Published].find(
      (found) => found !== undefined && fields.reason?.includes(found.sentence),
    );
    const isGood = state === 'Synced';
    this.#deps.events.record({
      regarding: { apiVersion: apiVersionOf(resource), kind: resource.kind, name, namespace, uid },
      type: isGood ? 'Normal' : 'Warning',
      reason: isGood ? 'RulesServed' : (worst ?? findings.Programmed).reason,
      action: 'Serve',
      note: isGood ? `All rules of ${key} are live.` : (fields.reason ?? findings.Programmed.sentence),
    });
  }
}

/** What is left of a status without the figures that change by themselves. */
const withoutFigures = ({ httpActives: _, tcpActives: __, rules, ...rest }: BCSEgressStatus): object => ({
  ...rest,
  rules: rules?.map(({ actives: ___, addresses: ____, ...rule }) => rule),
});
