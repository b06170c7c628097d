/**
 * Tells the API server whom to trust: writes the authorities of our certificate into webhook configurations. The chart makes
 * these objects and leaves that field to us; outside a cluster we make them whole.
 */
import { isInvalid, isNotFound } from '../kube/api-error.ts';
import type { JsonPatchOperation, KubeClient } from '../kube/client.ts';
import type { KubeObject, Resource } from '../kube/resource.ts';

/** What the two kinds of configuration are called on the wire. */
export type WebhookKind = 'Validating' | 'Mutating';

/** Where configurations of a kind live on the API server. */
export const webhookResource = (kind: WebhookKind): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: `${kind.toLowerCase()}webhookconfigurations`,
  kind: `${kind}WebhookConfiguration`,
  namespaced: false,
});

/** A configuration object, as far as we read and write it. */
export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[];
}

export interface Webhook {
  readonly name: string;
  readonly clientConfig: ClientConfig;
}

/** How the API server reaches a webhook; `caBundle` is base64. */
export interface ClientConfig {
  readonly url?: string;
  readonly caBundle?: string;
}

/** One configuration of ours. */
export interface WebhookSet {
  readonly kind: WebhookKind;
  /** The name of the object. */
  readonly name: string;
  /** Where its webhooks are served. */
  readonly path: string;
  /** The whole object, for a process outside the cluster. */
  readonly whole: (clientConfig: ClientConfig) => WebhookConfiguration;
}

/** Where the API server finds the webhooks: as the chart says, or at a URL when we run outside the cluster. */
export type WebhookTarget = { readonly kind: 'service' } | { readonly kind: 'url'; readonly base: string };

/** What one look at a configuration came to. */
export type Published = 'unchanged' | 'written' | 'missing' | 'changed meanwhile';

const fieldManager = 'sallyport-webhooks';

/** Makes one configuration right; may be called forever. Rejects when the API server cannot be reached or refuses. */
export const publishTrust = async (
  client: KubeClient,
  { kind, name, path, whole }: WebhookSet,
  target: WebhookTarget,
  caBundlePem: string,
  signal: AbortSignal,
): Promise<Published> => {
  const caBundle = Buffer.from(caBundlePem).toString('base64');
  const resource = webhookResource(kind);
  const existing = await client.get<WebhookConfiguration>(resource, { name }, { signal });
  if (target.kind === 'url') {
    const wanted = whole({ url: `${target.base}${path}`, caBundle });
    const applied = await client.apply(resource, wanted, { fieldManager, signal });
    return applied.metadata.resourceVersion === existing?.metadata.resourceVersion ? 'unchanged' : 'written';
  }
  if (existing === undefined) return 'missing';
  const operations = trustPatch(existing, caBundle);
  if (operations.length === 0) return 'unchanged';
  try {
    await client.patch(resource, { name }, { kind: 'json', operations }, { signal });
    return 'written';
  } catch (error) {
    // The list of webhooks is another one than we have read, or the object is gone: the next look will see it.
    if (isInvalid(error) || isNotFound(error)) return 'changed meanwhile';
    throw error;
  }
};

/** Sets the bundle wherever it differs. Places in the list are tested by name, since a list has no other key here. */
export const trustPatch = ({ webhooks = [] }: WebhookConfiguration, caBundle: string): JsonPatchOperation[] =>
  webhooks.flatMap(({ name, clientConfig }, index): JsonPatchOperation[] =>
    clientConfig.caBundle === caBundle
      ? []
      : [
          { op: 'test', path: `/webhooks/${index}/name`, value: name },
          { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle },
        ],
  );
