/**
 * Every metric of the runtime: name, help and labels in one table. Names are an interface: dashboards and alerts
 * use them, so they change only with a line in the changelog. Times are seconds, as Prometheus asks.
 */

/** One metric before it has values. */
export interface MetricDefinition {
  readonly name: `sallyport_${string}`;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Buckets for what usually takes milliseconds and must not take a minute. */
export const durationBuckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 60] as const;

export const metricDefinitions = {
  apiRequests: {
    name: 'sallyport_api_requests_total',
    help: 'Requests to the API server by verb, resource and HTTP status (0: no answer).',
    labels: ['verb', 'resource', 'status'],
  },
  apiRequestSeconds: {
    name: 'sallyport_api_request_seconds',
    help: 'Duration of requests to the API server; for a watch until its answer begins.',
    labels: ['verb', 'resource'],
  },
  informerObjects: {
    name: 'sallyport_informer_objects',
    help: 'Objects in the cache of an informer.',
    labels: ['informer'],
  },
  informerUnreadable: {
    name: 'sallyport_informer_unreadable_objects',
    help: 'Objects that exist but cannot be read; their last readable state is in use.',
    labels: ['informer'],
  },
  informerSilence: {
    name: 'sallyport_informer_silence_seconds',
    help: 'Time since the API server last said anything to an informer, bookmarks included.',
    labels: ['informer'],
  },
  informerRelists: {
    name: 'sallyport_informer_relists',
    help: 'Complete lists that an informer has read after its first.',
    labels: ['informer'],
  },
  informerReconnects: {
    name: 'sallyport_informer_reconnects',
    help: 'Watches that an informer has opened after its first.',
    labels: ['informer'],
  },
  queueDepth: {
    name: 'sallyport_queue_depth',
    help: 'Keys of a controller that wait for a worker.',
    labels: ['controller'],
  },
  queueOldest: {
    name: 'sallyport_queue_oldest_age_seconds',
    help: 'How long the oldest waiting key has waited.',
    labels: ['controller'],
  },
  queueRetries: {
    name: 'sallyport_queue_retries_total',
    help: 'Keys that were put back because their work failed.',
    labels: ['controller'],
  },
  reconcileSeconds: {
    name: 'sallyport_reconcile_seconds',
    help: 'Duration of the work on one key.',
    labels: ['controller', 'outcome'],
  },
  reconcileAge: {
    name: 'sallyport_reconcile_input_age_seconds',
    help: 'Time from the first change that asked for the work on a key to its end.',
    labels: ['controller'],
  },
  reconcileLastSuccess: {
    name: 'sallyport_reconcile_last_success_timestamp_seconds',
    help: 'When the work on a key last succeeded.',
    labels: ['controller'],
  },
  reconcileFailures: {
    name: 'sallyport_reconcile_failures_total',
    help: 'Work on a key that failed or was refused, by reason.',
    labels: ['controller', 'outcome', 'reason'],
  },
  leaseLeading: {
    name: 'sallyport_lease_is_leader',
    help: '1 while this process leads, 0 otherwise.',
    labels: ['lease'],
  },
  leaseTransitions: {
    name: 'sallyport_lease_transitions',
    help: 'How often the holder of the lease has changed, as this process last wrote it.',
    labels: ['lease'],
  },
  leaseFailures: {
    name: 'sallyport_lease_failures_total',
    help: 'Tries to take or renew the lease that got no answer.',
    labels: ['lease'],
  },
  admissionSeconds: {
    name: 'sallyport_admission_seconds',
    help: 'Duration of admission calls; outcome bad is the fault of the caller, error is ours.',
    labels: ['path', 'outcome'],
  },
  certificateExpiry: {
    name: 'sallyport_certificate_expiry_timestamp_seconds',
    help: 'When a certificate in use runs out.',
    labels: ['certificate'],
  },
  certificateFailures: {
    name: 'sallyport_certificate_refresh_failures_total',
    help: 'Tries to refresh the certificates that failed.',
    labels: [],
  },
  configInForce: {
    name: 'sallyport_config_file_in_force',
    help: '1 when the configuration file as it is now is in force, 0 when it is bad and an older one is.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;
