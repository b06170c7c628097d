/**
 * Metrics binds the hooks of the runtime to prom-client. One registry per process, so that tests and processes never share
 * values.
 */
import { type Counter, collectDefaultMetrics, type Gauge, type Histogram, Registry } from 'prom-client';
import type { CertificateHooks } from '../certs/keeper.ts';
import type { ConfigHooks } from '../config/file.ts';
import type { Controller, ControllerHooks } from '../control/controller.ts';
import type { LeaseHooks } from '../control/lease.ts';
import type { RequestRecord } from '../kube/caller.ts';
import type { InformerStats } from '../kube/informer.ts';
import { type Instruments, instruments } from '../process/instruments.ts';
import { metricDefinitions as define, type MetricDefinition } from '../process/metric-definitions.ts';
import type { AdmissionHooks } from '../serve/admission.ts';

/** The metrics of one process. Give its parts to the components, and `registry` to the health server. */
export interface Metrics {
  readonly registry: Registry;
  /** For metrics that only one program has. */
  readonly instruments: Instruments;
  readonly admission: AdmissionHooks;
  readonly certificates: CertificateHooks;
  readonly config: ConfigHooks;
  /** For the `onRequest` option of the Kubernetes client. */
  readonly onRequest: (record: RequestRecord) => void;
  controller(name: string): ControllerHooks;
  lease(name: string): LeaseHooks;
  /** Reads the queue of a controller at every scrape. */
  observeQueue(controller: Pick<Controller, 'name' | 'queue'>): void;
  /** Reads the stats of an informer at every scrape. */
  observeInformer(name: string, informer: { stats(): InformerStats }): void;
}

/** How often it is looked whether the event loop is late. The default of 10 ms takes half of what an idle agent does. */
const lagEveryMs = 100;

/** Returns the metrics of a process, with Node's own under the same prefix. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'sallyport_', eventLoopMonitoringPrecision: lagEveryMs });
  const own = instruments(registry);
  const { counter, gauge, histogram } = own;
  const apiRequests = counter(define.apiRequests);
  const apiRequestSeconds = histogram(define.apiRequestSeconds);
  return {
    registry,
    instruments: own,
    onRequest({ verb, resource, status, durationMs }) {
      apiRequests.inc({ verb, resource, status });
      apiRequestSeconds.observe({ verb, resource }, durationMs / 1000);
    },
    admission: admissionHooks(histogram(define.admissionSeconds)),
    certificates: certificateHooks(gauge(define.certificateExpiry), counter(define.certificateFailures)),
    config: configHooks(gauge(define.configInForce)),
    ...controlMetrics(registry),
    observeInformer: informerMetrics(registry),
  };
}

function controlMetrics(registry: Registry): Pick<Metrics, 'controller' | 'lease' | 'observeQueue'> {
  const { counter, gauge, histogram } = instruments(registry);
  // By name: the controllers of a later term take the place of those before.
  const queues = new Map<string, Pick<Controller, 'queue'>>();
  const retries = counter(define.queueRetries);
  const seconds = histogram(define.reconcileSeconds);
  const age = histogram(define.reconcileAge);
  const lastSuccess = gauge(define.reconcileLastSuccess);
  const failures = counter(define.reconcileFailures);
  const leading = gauge(define.leaseLeading);
  const transitions = gauge(define.leaseTransitions);
  const leaseFailures = counter(define.leaseFailures);
  gauge(define.queueDepth, (set) => {
    for (const [controller, { queue }] of queues) set({ controller }, queue.depth);
  });
  gauge(define.queueOldest, (set) => {
    for (const [controller, { queue }] of queues) set({ controller }, queue.oldestAgeMs() / 1000);
  });
  return {
    observeQueue: (controller) => void queues.set(controller.name, controller),
    controller: (controller) => ({
      retried: () => retries.inc({ controller }),
      reconciled({ outcome, reason, durationMs, ageMs }) {
        seconds.observe({ controller, outcome }, durationMs / 1000);
        age.observe({ controller }, ageMs / 1000);
        if (outcome === 'failed' || outcome === 'refused') failures.inc({ controller, outcome, reason });
        else lastSuccess.setToCurrentTime({ controller });
      },
    }),
    lease(lease) {
      leading.set({ lease }, 0);
      return {
        leading: (isLeader) => leading.set({ lease }, isLeader ? 1 : 0),
        transitions: (count) => transitions.set({ lease }, count),
        failed: () => leaseFailures.inc({ lease }),
      };
    },
  };
}

function informerMetrics(registry: Registry): Metrics['observeInformer'] {
  const { gauge } = instruments(registry);
  const informers = new Map<string, { stats(): InformerStats }>();
  const read = (definition: MetricDefinition, pick: (stats: InformerStats) => number | undefined): void => {
    gauge(definition, (set) => {
      for (const [informer, source] of informers) {
        const value = pick(source.stats());
        if (value !== undefined) set({ informer }, value);
      }
    });
  };
  read(define.informerObjects, (stats) => stats.objects);
  read(define.informerUnreadable, (stats) => stats.unreadable);
  read(define.informerSilence, (stats) => (stats.silentMs === undefined ? undefined : stats.silentMs / 1000));
  read(define.informerRelists, (stats) => stats.relists);
  read(define.informerReconnects, (stats) => stats.reconnects);
  return (name, informer) => void informers.set(name, informer);
}

function admissionHooks(seconds: Histogram): AdmissionHooks {
  return { answered: (path, outcome, durationMs) => seconds.observe({ path, outcome }, durationMs / 1000) };
}

function certificateHooks(expiry: Gauge, failures: Counter): CertificateHooks {
  return {
    expires(leaf, authority) {
      expiry.set({ certificate: 'leaf' }, leaf.getTime() / 1000);
      expiry.set({ certificate: 'authority' }, authority.getTime() / 1000);
    },
    failed: () => failures.inc(),
  };
}

function configHooks(inForce: Gauge): ConfigHooks {
  return { inForce: (isCurrent) => inForce.set(isCurrent ? 1 : 0) };
}
