/**
 * ObjectWriter carries changes out for one kind. Everything it sends names the uid of the object it means, so a write that
 * comes too late changes nothing; losing such a race is normal and is told by `isLostRace`.
 */
import { compareRevisions } from '../../core/status/revision.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { type AnyStatus, clearing, type StatusOwnership } from '../../runtime/kube/owned-status.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { assertNever } from '../../runtime/process/bug.ts';
import { type CachedObject, type Identity, identityOf } from '../loop/caches.ts';
import type { Change } from './change.ts';

/** What is written, and as whom. */
export interface ObjectWriterOptions<Status extends AnyStatus> {
  readonly resource: Resource;
  readonly fieldManager: string;
  /** Put on by `create` and `hold`, taken off by `release`; undefined for kinds that we do not hold. */
  readonly finalizer: string | undefined;
  readonly ownership: StatusOwnership<Status>;
}

/** An object as the server answered our last write to it. */
interface WriteAnswer<Status> {
  readonly identity: Identity;
  readonly status: Status | undefined;
}

/** The writer of one kind. */
export class ObjectWriter<Status extends AnyStatus> {
  readonly #client: KubeClient;
  readonly #options: ObjectWriterOptions<Status>;
  /** key -> the answer to our last write, until the cache has caught up with it */
  readonly #answerByKey = new Map<string, WriteAnswer<Status>>();

  constructor(client: KubeClient, options: ObjectWriterOptions<Status>) {
    this.#client = client;
    this.#options = options;
  }

  /** The object as it is known best: as the cache has it, or as the server answered if the cache lags behind. */
  latest<View>(key: string, kept: CachedObject<View, Status>): CachedObject<View, Status> {
    const answer = this.#answerByKey.get(key);
    if (answer === undefined) return kept;
    if (answer.identity.uid === kept.identity.uid && isNewer(answer.identity, kept.identity)) {
      return { ...kept, identity: answer.identity, status: answer.status };
    }
    this.#answerByKey.delete(key);
    return kept;
  }

  /** Forgets what is known about an object that is gone. */
  forget(key: string): void {
    this.#answerByKey.delete(key);
  }

  /** Makes an object that has nothing but a name; fails when there is one already. */
  async create(name: string, signal: AbortSignal): Promise<void> {
    const { resource, finalizer } = this.#options;
    const metadata = { name, ...(finalizer === undefined ? {} : { finalizers: [finalizer] }) };
    await this.#client.create(resource, { metadata }, { signal });
  }

  /** Carries out one change to an object that is there. */
  async write(
    key: string,
    identity: Identity,
    change: Exclude<Change<Status>, { kind: 'create' }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { resource, fieldManager, finalizer } = this.#options;
    switch (change.kind) {
      case 'delete':
        await this.#client.delete(resource, identity, { uid: identity.uid, signal });
        return;
      case 'hold': {
        const metadata = { ...metadataOf(identity), finalizers: finalizer === undefined ? [] : [finalizer] };
        this.#note(key, await this.#client.apply(resource, { metadata }, { fieldManager, signal }));
        return;
      }
      case 'release':
        await this.#release(identity, signal);
        return;
      case 'status':
        await this.#writeStatus(key, identity, change.status, signal);
        return;
      default:
        assertNever(change);
    }
  }

  async #writeStatus(key: string, identity: Identity, status: Status, signal: AbortSignal): Promise<void> {
    const { resource, fieldManager, ownership } = this.#options;
    const object = { metadata: metadataOf(identity), status };
    const answer = await this.#client.applyStatus<WithStatus<Status>>(resource, object, { fieldManager, signal });
    this.#note(key, answer);
    const rest = answer.status && clearing(answer.status, status, ownership);
    if (rest === undefined) return;
    const { resourceVersion } = answer.metadata;
    const patch = { kind: 'merge', value: { metadata: { resourceVersion }, status: rest } } as const;
    const cleared = this.#client.patch<WithStatus<Status>>(resource, identity, patch, {
      subresource: 'status',
      signal,
    });
    this.#note(key, await cleared);
  }

  /** A patch with a test: it fails when the list has changed, and unlike apply it takes off what another manager put on. */
  async #release(identity: Identity, signal: AbortSignal): Promise<void> {
    const { resource, finalizer } = this.#options;
    const path = `/metadata/finalizers/${identity.finalizers.indexOf(finalizer ?? '')}`;
    const operations = [
      { op: 'test', path: '/metadata/uid', value: identity.uid },
      { op: 'test', path, value: finalizer },
      { op: 'remove', path },
    ] as const;
    await this.#client.patch(resource, identity, { kind: 'json', operations }, { signal });
  }

  #note(key: string, answer: WithStatus<Status>): void {
    this.#answerByKey.set(key, { identity: identityOf(answer), status: answer.status });
  }
}

/** True when a write failed because the object has changed or gone meanwhile: look again and decide again. */
export const isLostRace = (error: unknown): boolean => isConflict(error) || isNotFound(error) || isAlreadyExists(error);

interface WithStatus<Status> extends KubeObject {
  readonly status?: Status | undefined;
}

const metadataOf = ({ name, namespace, uid }: Identity) => ({
  name,
  uid,
  ...(namespace === undefined ? {} : { namespace }),
});

const isNewer = (a: Identity, b: Identity): boolean => compareRevisions(a.resourceVersion, b.resourceVersion) > 0;
