/**
 * The keys with which agents seal what they tell each other, from a Secret that the controller makes. They are followed
 * beside the caches: an agent without them does its work, but does not agree with others on owners.
 */
import { failoverNames } from '../../api/names.ts';
import { type FollowingDeps, follow } from '../../runtime/kube/following.ts';
import type { Informer } from '../../runtime/kube/informer.ts';
import { coreResource, type KubeObject } from '../../runtime/kube/resource.ts';

/** At least one, the present one first, as in the Secret: in base64. A cache freezes what it holds, and bytes cannot be. */
export type Keys = readonly string[];

/** What is shorter is no key (seal.ts). */
const KEY_BYTES = 32;

/** Follows the Secret; nothing is read before it runs. */
export const followKeys = (deps: FollowingDeps, namespace: string): Informer<Keys> =>
  follow(deps, 'keys', coreResource('secrets', 'Secret', true), {
    project: keysIn,
    scope: { namespace, fieldSelector: `metadata.name=${failoverNames.secret}` },
  });

/** The bytes of keys. */
export const keyBytes = (keys: Keys): readonly Uint8Array[] =>
  keys.map((text) => new Uint8Array(Buffer.from(text, 'base64')));

/** The keys in a Secret; undefined when it has none that can be used. */
export const keysIn = (object: KubeObject & { readonly data?: unknown }): Keys | undefined => {
  const data: Readonly<Record<string, unknown>> = Object(object.data ?? {});
  const keys = ['key', 'previous'].flatMap((name) => {
    const text = data[name];
    const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined;
    return bytes !== undefined && bytes.length >= KEY_BYTES ? [bytes.toString('base64')] : [];
  });
  return keys.length === 0 ? undefined : keys;
};
