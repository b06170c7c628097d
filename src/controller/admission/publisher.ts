/**
 * Tells the API server whom to trust: writes the authorities of our certificate into the webhook configurations. The
 * chart makes these objects and leaves that field to us; outside a cluster we make them whole.
 */
import { isInvalid, isNotFound } from '../../runtime/kube/api-error.ts';
import type { JsonPatchOperation, KubeClient } from '../../runtime/kube/client.ts';
import {
  type WebhookConfiguration,
  type WebhookKind,
  webhookConfiguration,
  webhookName,
  webhookPath,
  webhookResource,
} from './webhooks.ts';

/** Where the API server finds the webhooks: as the chart says, or at a URL when we run outside the cluster. */
export type WebhookTarget = { readonly kind: 'service' } | { readonly kind: 'url'; readonly base: string };

/** What one look at a configuration came to. */
export type Published = 'unchanged' | 'written' | 'missing' | 'changed meanwhile';

const fieldManager = 'sallyport-webhooks';

/** Makes one configuration right; may be called forever. Rejects when the API server cannot be reached or refuses. */
export const publish = async (
  client: KubeClient,
  kind: WebhookKind,
  target: WebhookTarget,
  caBundlePem: string,
  signal: AbortSignal,
): Promise<Published> => {
  const caBundle = Buffer.from(caBundlePem).toString('base64');
  const resource = webhookResource(kind);
  const existing = await client.get<WebhookConfiguration>(resource, { name: webhookName }, { signal });
  if (target.kind === 'url') {
    const wanted = webhookConfiguration(kind, { url: `${target.base}${webhookPath(kind)}`, caBundle });
    const applied = await client.apply(resource, wanted, { fieldManager, signal });
    return applied.metadata.resourceVersion === existing?.metadata.resourceVersion ? 'unchanged' : 'written';
  }
  if (existing === undefined) return 'missing';
  const operations = trustPatch(existing, caBundle);
  if (operations.length === 0) return 'unchanged';
  try {
    await client.patch(resource, { name: webhookName }, { kind: 'json', operations }, { signal });
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
