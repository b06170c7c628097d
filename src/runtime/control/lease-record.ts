/**
 * LeaseRecord is what all candidates share: one Lease object of coordination.k8s.io/v1. LeaseStore reads and
 * writes it with optimistic concurrency; `kubeLeaseStore` is the one on the API server.
 */
import { isAlreadyExists, isConflict } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject, Resource } from '../kube/resource.ts';

/** Who leads, as written down. Times are for people: no decision is made with them. */
export interface LeaseRecord {
  /** Absent when the last holder gave the lease back. */
  readonly holder: string | undefined;
  readonly durationSeconds: number;
  readonly acquired: Date;
  readonly renewed: Date;
  /** How often the holder has changed. */
  readonly transitions: number;
}

/** A record with the version that a write must name. */
export interface StoredLease {
  readonly record: LeaseRecord;
  readonly version: string;
}

/** The shared record. A write succeeds only if nobody else wrote since `version` was read. */
export interface LeaseStore {
  /** Returns undefined when there is no record yet. */
  read(signal: AbortSignal): Promise<StoredLease | undefined>;
  /** Writes, or creates when `version` is undefined. Returns false when somebody else was faster. */
  write(record: LeaseRecord, version: string | undefined, signal: AbortSignal): Promise<boolean>;
}

/** The name of one Lease. */
export interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

/** Where leases live on the API server. */
export const leaseResource: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/**
 * Returns the store of one Lease object. Calls are not repeated: the lease has its own timing. What others wrote into the
 * object, such as labels, stays.
 */
export function kubeLeaseStore(client: KubeClient, ref: LeaseRef): LeaseStore {
  let lastRead: Lease | undefined;
  return {
    async read(signal) {
      const lease = await client.get<Lease>(leaseResource, ref, { signal, retries: 0 });
      lastRead = lease;
      if (lease === undefined) return undefined;
      return { record: fromLease(lease), version: lease.metadata.resourceVersion ?? '' };
    },
    async write(record, version, signal) {
      const old = lastRead?.metadata.resourceVersion === version ? lastRead : undefined;
      const lease = toLease(ref, record, version, old);
      try {
        if (version === undefined) await client.create(leaseResource, lease, { signal, retries: 0 });
        else await client.update(leaseResource, lease, { signal, retries: 0 });
        return true;
      } catch (error) {
        if (isConflict(error) || isAlreadyExists(error)) return false;
        throw error;
      }
    },
  };
}

function fromLease({ spec = {} }: Lease): LeaseRecord {
  return {
    holder: spec.holderIdentity === '' ? undefined : spec.holderIdentity,
    durationSeconds: spec.leaseDurationSeconds ?? 0,
    acquired: new Date(spec.acquireTime ?? 0),
    renewed: new Date(spec.renewTime ?? 0),
    transitions: spec.leaseTransitions ?? 0,
  };
}

function toLease(ref: LeaseRef, record: LeaseRecord, version: string | undefined, old: Lease | undefined): Lease {
  const { holderIdentity: _, ...kept } = old?.spec ?? {};
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...old?.metadata,
      name: ref.name,
      namespace: ref.namespace,
      ...(version && { resourceVersion: version }),
    },
    spec: {
      ...kept,
      ...(record.holder === undefined ? {} : { holderIdentity: record.holder }),
      leaseDurationSeconds: record.durationSeconds,
      acquireTime: microTime(record.acquired),
      renewTime: microTime(record.renewed),
      leaseTransitions: record.transitions,
    },
  };
}

/** MicroTime of the Kubernetes API: the server refuses a date without exactly six digits after the point. */
function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
