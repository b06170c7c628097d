/**
 * The spec of EgressClusterInfo, read so that one bad entry does not cost the others. The API server refuses bad entries,
 * but an object may be older than its rules, and without an ignore set the traffic of the cluster would leave it. Pure.
 */
import { EgressClusterInfoSpec } from '../../api/egress-cluster-info.ts';
import { faultsOf } from '../../api/sentence.ts';
import { lower } from '../../api/structural.ts';

/** A spec as far as it can be read. */
export interface ReadClusterInfo {
  /** Undefined when more than single entries of `extraCidr` is wrong. */
  readonly spec: EgressClusterInfoSpec | undefined;
  /** What is wrong, each as a sentence without its full stop. */
  readonly faults: readonly string[];
}

/** Reads a spec; an absent one is the default. */
export const readInfoSpec = (given: unknown = {}): ReadClusterInfo => {
  const parsed = EgressClusterInfoSpec.safeParse(given);
  if (parsed.success) return { spec: parsed.data, faults: [] };
  const faults = faultsOf(parsed.error, lower(EgressClusterInfoSpec, 'EgressClusterInfo'), given);
  const badEntries = new Set(faults.map(({ path: [field, index] }) => (field === 'extraCidr' ? index : undefined)));
  return {
    spec: EgressClusterInfoSpec.safeParse(withoutEntries(given, badEntries)).data,
    faults: faults.map(({ sentence }) => sentence),
  };
};

const withoutEntries = (given: unknown, indexes: ReadonlySet<unknown>): unknown => {
  if (typeof given !== 'object' || given === null || !('extraCidr' in given)) return given;
  const { extraCidr } = given;
  return Array.isArray(extraCidr)
    ? { ...given, extraCidr: extraCidr.filter((_entry, index) => !indexes.has(index)) }
    : given;
};
