/**
 * Admission of BCSEgress objects: what is already lost is refused before it is stored, with the words that its status would
 * have. Whoever writes first has a port or a name here, whatever its age: to take one from somebody who has it is
 * refused too, though the plan would allow it to an older object. An update is refused only for rules that it changes.
 */
import { isDeepStrictEqual } from 'node:util';
import { ObjectMeta, proxyGroup } from '../api/object-meta.ts';
import { planProxies } from '../core/proxy/plan.ts';
import { projectEgress } from '../core/proxy/project.ts';
import type { EgressView, ProxiesView } from '../core/proxy/view.ts';
import type { AdmissionRequest, AdmissionVerdict } from '../runtime/serve/admission-review.ts';
import type { WebhookSet } from '../runtime/serve/webhook-trust.ts';

/** The name of the webhook configuration. */
export const webhookName = 'sallyport-operator';
/** The Service and the Secret of the chart have this name. */
export const webhookService = 'sallyport-operator-webhook';
export const webhookPath = '/validate';
const timeoutSeconds = 5;

/** The configuration object; the chart renders the same. */
export const webhookSet: WebhookSet = {
  kind: 'Validating',
  name: webhookName,
  path: webhookPath,
  whole: (clientConfig) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: webhookName },
    webhooks: [
      {
        name: `bcsegresses.${proxyGroup}`,
        admissionReviewVersions: ['v1'],
        clientConfig,
        // Only a service to people: without it a rule that is lost is told so in its status.
        failurePolicy: 'Ignore',
        matchConditions: [
          { name: 'spec-changed', expression: "request.operation != 'UPDATE' || object.spec != oldObject.spec" },
        ],
        rules: [
          {
            apiGroups: [proxyGroup],
            apiVersions: ['v1alpha1'],
            operations: ['CREATE', 'UPDATE'],
            resources: ['bcsegresses'],
          },
        ],
        sideEffects: 'None',
        timeoutSeconds,
      },
    ],
  }),
};

/** Reasons for which a rule is lost for good, as far as its author can tell. A proxy that is missing may come. */
const lost: ReadonlySet<string> = new Set([
  'SourcePortTaken',
  'DomainTaken',
  'PortReserved',
  'ClaimNotAllowed',
  'NameReserved',
  'NameNotAllowed',
  'AddressForbidden',
  'ProxyLoop',
]);

/** Judges one request by what is known of the cluster. Pure. */
export const judgeEgress = (request: AdmissionRequest, world: ProxiesView): AdmissionVerdict => {
  const view = viewOf(request.object, request);
  if (view === undefined || view.isDeleting) return { kind: 'allow' };
  const old = viewOf(request.oldObject, request);
  const others = world.egresses.filter(({ key }) => key !== view.key);
  const youngest: EgressView = {
    ...view,
    createdAtMs: Math.max(0, ...others.map(({ createdAtMs }) => createdAtMs)) + 1,
  };
  const plan = planProxies({ ...world, egresses: [...others, youngest] });
  for (const { name, verdict } of plan.egresses.get(view.key)?.rules ?? []) {
    if (verdict.ok || !lost.has(verdict.finding.reason) || isUntouched(name, view, old)) continue;
    const { reason, sentence } = verdict.finding;
    return { kind: 'deny', reason, message: `rule ${name}: ${sentence}` };
  }
  return { kind: 'allow' };
};

const isUntouched = (name: string, view: EgressView, old: EgressView | undefined): boolean =>
  old !== undefined &&
  old.proxy === view.proxy &&
  isDeepStrictEqual(
    old.rules.find((rule) => rule.name === name),
    view.rules.find((rule) => rule.name === name),
  );

/** An object with generateName has no name yet. */
const metadataSchema = ObjectMeta.extend({ name: ObjectMeta.shape.name.default('') });

const viewOf = (object: unknown, { namespace = '' }: AdmissionRequest): EgressView | undefined => {
  if (object === undefined) return undefined;
  // A parse boundary: nothing is assumed about the parts, and only metadata must be readable.
  const { metadata, spec, status } = object as Readonly<Record<'metadata' | 'spec' | 'status', unknown>>;
  return projectEgress({ metadata: { ...metadataSchema.parse(metadata), namespace }, spec, status });
};
