/**
 * The webhook configurations as data: which requests the API server sends where. The chart renders the same objects;
 * a process outside the cluster makes them itself (runtime/serve/webhook-trust.ts).
 *
 * Conditions keep away every request that no rule is about, so that less depends on us: labels, finalizers and
 * heartbeats go through while no controller runs. They need Kubernetes 1.30 (matchConditions, stable since then).
 */
import { gatewayGroup } from '../../api/object-meta.ts';
import type { ClientConfig, WebhookConfiguration, WebhookKind, WebhookSet } from '../../runtime/serve/webhook-trust.ts';

/** The name of both configuration objects. */
export const webhookName = 'sallyport';

export const webhookKinds = ['Mutating', 'Validating'] as const satisfies readonly WebhookKind[];

interface WebhookEntry {
  readonly resource: string;
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  /** All of them must hold. Absent: every request. */
  readonly conditions?: readonly { readonly name: string; readonly expression: string }[];
}

const specChanged = {
  name: 'spec-changed',
  expression: "request.operation != 'UPDATE' || object.spec != oldObject.spec",
};

// All that is filled in is the name of the gateway. Nothing has been checked yet, so that a spec may be anything.
const namesNoGateway = {
  name: 'names-no-gateway',
  expression:
    "!has(object.spec) || type(object.spec) != map || !has(object.spec.egressGatewayName) || object.spec.egressGatewayName == ''",
};

// Agents write this status every few seconds. Were those writes to wait for us, a controller that is away would make
// every gateway node look dead.
const markTaken = {
  name: 'mark-taken-away',
  expression:
    "has(oldObject.status) && has(oldObject.status.mark) && oldObject.status.mark != '' && (!has(object.status) || !has(object.status.mark) || object.status.mark != oldObject.status.mark)",
};

/** Our own loops write under field managers that begin like this. */
export const ownFieldManagers = 'sallyport';

const byHand = {
  name: 'written-by-hand',
  expression: `!has(request.options.fieldManager) || !request.options.fieldManager.startsWith('${ownFieldManagers}')`,
};

const write = ['CREATE', 'UPDATE'] as const;

const entriesOf: Readonly<Record<WebhookKind, readonly WebhookEntry[]>> = {
  Mutating: [
    { resource: 'egressgateways', operations: write, failurePolicy: 'Fail', conditions: [specChanged] },
    { resource: 'egresspolicies', operations: write, failurePolicy: 'Fail', conditions: [specChanged, namesNoGateway] },
    {
      resource: 'egressclusterpolicies',
      operations: write,
      failurePolicy: 'Fail',
      conditions: [specChanged, namesNoGateway],
    },
  ],
  Validating: [
    { resource: 'egressgateways', operations: [...write, 'DELETE'], failurePolicy: 'Fail', conditions: [specChanged] },
    { resource: 'egresspolicies', operations: write, failurePolicy: 'Fail', conditions: [specChanged] },
    { resource: 'egressclusterpolicies', operations: write, failurePolicy: 'Fail', conditions: [specChanged] },
    { resource: 'egressclusterinfos', operations: ['DELETE'], failurePolicy: 'Fail' },
    { resource: 'egresstunnels/status', operations: ['UPDATE'], failurePolicy: 'Fail', conditions: [markTaken] },
    // Only advice: what cannot be judged is written all the same.
    { resource: 'egressgateways/status', operations: ['UPDATE'], failurePolicy: 'Ignore', conditions: [byHand] },
    { resource: 'egresspolicies/status', operations: ['UPDATE'], failurePolicy: 'Ignore', conditions: [byHand] },
    { resource: 'egressclusterpolicies/status', operations: ['UPDATE'], failurePolicy: 'Ignore', conditions: [byHand] },
    { resource: 'egressendpointslices', operations: write, failurePolicy: 'Ignore', conditions: [byHand] },
    { resource: 'egressclusterendpointslices', operations: write, failurePolicy: 'Ignore', conditions: [byHand] },
  ],
};

/** How long the API server waits for an answer. Ours take milliseconds, and half a second where a cache may lag. */
const timeoutSeconds = 5;

/** The path of the webhooks of a kind. */
export const webhookPath = (kind: WebhookKind): string => (kind === 'Mutating' ? '/mutate' : '/validate');

/** The whole configuration object of a kind. */
export const webhookConfiguration = (kind: WebhookKind, clientConfig: ClientConfig): WebhookConfiguration => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: `${kind}WebhookConfiguration`,
  metadata: { name: webhookName },
  webhooks: entriesOf[kind].map(({ resource, operations, failurePolicy, conditions = [] }) => ({
    name: `${resource.replace('/', '-')}.${gatewayGroup}`,
    admissionReviewVersions: ['v1'],
    clientConfig,
    failurePolicy,
    matchConditions: conditions,
    rules: [{ apiGroups: [gatewayGroup], apiVersions: ['v1beta1'], operations, resources: [resource] }],
    sideEffects: 'None',
    timeoutSeconds,
  })),
});

/** Both configurations, for whoever keeps them right. */
export const webhookSets: readonly WebhookSet[] = webhookKinds.map((kind) => ({
  kind,
  name: webhookName,
  path: webhookPath(kind),
  whole: (clientConfig) => webhookConfiguration(kind, clientConfig),
}));
