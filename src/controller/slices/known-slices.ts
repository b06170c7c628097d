/**
 * SliceIndex are the slices as the caches show them, by policy. It also tells when the caches show something that was
 * just written: work on a policy ends only then, so the next work on it never packs from an older state. Otherwise a
 * pod that comes a millisecond after another could be put into a second slice while it is already in the first.
 */
import type { PolicyKey } from '../../core/cluster/view.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import { type Clock, wait } from '../../runtime/process/clock.ts';
import type { CachedSlice } from '../loop/caches.ts';
import { policyOfSlice } from './slice-object.ts';

/** One write that the caches have to show: this generation of this object, or that the object is gone. */
export interface Write {
  /** Key of the slice. */
  readonly key: string;
  readonly uid: string;
  readonly generation: number | 'gone';
}

export class SliceIndex {
  /** key of the slice -> slice */
  readonly #sliceByKey = new Map<string, CachedSlice>();
  readonly #keysByPolicy = new Map<PolicyKey, Set<string>>();
  /** Writes that are waited for, each with what ends the wait. */
  readonly #awaited = new Map<Write, () => void>();

  /** The policies that have slices, whether they exist or not; with an empty name where a slice has none. */
  policies(): Iterable<PolicyKey> {
    return this.#keysByPolicy.keys();
  }

  /** The slices of a policy; empty when it has none. */
  of(policy: PolicyKey): CachedSlice[] {
    return [...(this.#keysByPolicy.get(policy) ?? [])].flatMap((key) => this.#sliceByKey.get(key) ?? []);
  }

  /** Takes a change of the caches and returns the policies that it concerns. */
  take(change: StoreChange<CachedSlice>): PolicyKey[] {
    const { key } = change;
    const value = change.kind === 'put' ? change.value : undefined;
    const before = this.#ownerOf(key);
    if (value === undefined) this.#sliceByKey.delete(key);
    else this.#sliceByKey.set(key, value);
    const after = this.#ownerOf(key);
    if (before !== after) {
      if (before !== undefined) this.#unfile(before, key);
      if (after !== undefined) this.#keysByPolicy.set(after, (this.#keysByPolicy.get(after) ?? new Set()).add(key));
    }
    // Whoever sees a slice go has seen all that was written to it before.
    const goneUid = change.kind === 'delete' ? change.previous.identity.uid : undefined;
    for (const [write, done] of this.#awaited) {
      if (write.key === key && (write.uid === goneUid || this.#shows(write))) done();
    }
    return [...new Set([before, after])].filter((policy) => policy !== undefined);
  }

  /** Resolves with true when the caches have shown all writes, with false when the time is over or the signal came. */
  async shown(writes: readonly Write[], clock: Clock, limitMs: number, signal: AbortSignal): Promise<boolean> {
    const waits = writes.filter((write) => !this.#shows(write));
    if (waits.length === 0) return true;
    const shown = new AbortController();
    const awaited = new Set(waits);
    for (const write of waits) {
      this.#awaited.set(write, () => {
        this.#awaited.delete(write);
        awaited.delete(write);
        if (awaited.size === 0) shown.abort();
      });
    }
    await wait(clock, limitMs, AbortSignal.any([signal, shown.signal]));
    for (const write of awaited) this.#awaited.delete(write);
    return awaited.size === 0;
  }

  #shows({ key, uid, generation }: Write): boolean {
    const identity = this.#sliceByKey.get(key)?.identity;
    if (generation === 'gone') return identity?.uid !== uid;
    return identity?.uid === uid && identity.generation >= generation;
  }

  #ownerOf(key: string): PolicyKey | undefined {
    const slice = this.#sliceByKey.get(key);
    return slice && policyOfSlice(slice);
  }

  #unfile(policy: PolicyKey, key: string): void {
    const keys = this.#keysByPolicy.get(policy);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysByPolicy.delete(policy);
  }
}
