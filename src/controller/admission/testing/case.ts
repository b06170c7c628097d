/** The shape of a case. */
import type { Manifest } from './cluster.ts';

/** One request in the usual cluster, and the answer. An object that the cluster has already is updated. */
export interface Case {
  readonly rule: string;
  readonly title: string;
  readonly object: Manifest;
  readonly operation?: 'delete' | 'status';
  readonly families?: 'both' | 'ipv4';
  /** Objects that are otherwise than usual. */
  readonly meanwhile?: readonly Manifest[];
  /** The reason of a refusal; absent for a warning. */
  readonly reason?: string;
  readonly message: string;
}

/** A selector that no label can meet: its key is not one. */
export const oddSelector = { matchLabels: { 'no label': 'x' } };
