/**
 * ClusterInputReader turns the caches into the lists of a NodeInput. A list is the same value until something in it changes, so
 * whoever plans knows by identity which part of the last plan still holds; and it has a change log, which tells what is other.
 */
import { clusterInfoName } from '../../api/egress-cluster-info.ts';
import type { Electorate, PolicyKey, PolicyView } from '../../core/cluster/view.ts';
import { ListChangeLog } from '../../core/incremental/change-log.ts';
import type { NodeInput } from '../../core/node/input.ts';
import type { Roster } from '../../core/ownership/planned.ts';
import type { Informer } from '../../runtime/kube/informer.ts';
import type { StoreChange } from '../../runtime/kube/store.ts';
import type { AgentCaches } from './caches.ts';

/** What the cluster says: the part of a NodeInput that comes from the API server. */
export type ClusterInput = Pick<NodeInput, 'ranges' | 'tunnels' | 'policies' | 'namespaces' | 'pods'>;

/** What the cluster says about who owns EIPs. */
export interface OwnershipFacts extends Pick<ClusterInput, 'policies' | 'tunnels'> {
  readonly electorate: Electorate | undefined;
  readonly rosters: readonly Roster[];
}

/** Up to which version of each kind of policy something holds; undefined until it was read. */
export interface Revisions {
  readonly policies: string | undefined;
  readonly clusterPolicies: string | undefined;
}

/** The caches as lists. */
export interface ClusterInputReader {
  /** The lists as the caches are now. */
  gather(): ClusterInput;
  /** What the protocol of owners goes by, as the caches are now. */
  ownershipFacts(): OwnershipFacts;
  /** One of these lists alone. */
  tunnels(): ClusterInput['tunnels'];
  /** The versions that the lists stand for. */
  revisions(): Revisions;
  /** Labels of the node itself; none until it was read. */
  labels(): Readonly<Record<string, string>>;
}

/** A policy has just come, and the controller has not said yet where it leaves: in some milliseconds it will. */
const isUnanswered = (change: StoreChange<PolicyView>): boolean =>
  change.kind === 'put' && change.previous === undefined && change.value.recorded.node === undefined;

/** Told of a change; `canWait` when more is about to come, without which little can be decided. */
export type OnChange = (canWait: boolean) => void;

/** Follows the caches; `onChange` is called for every change of what `gather` or `labels` return. */
export const createClusterInputReader = (caches: AgentCaches, onChange: OnChange, node: string): ClusterInputReader => {
  const listOf = <T>(
    informers: readonly Informer<T>[],
    canWait: (change: StoreChange<T>) => boolean = () => false,
  ): (() => readonly T[]) => {
    const changeLog = new ListChangeLog<T>();
    let list: readonly T[] | undefined;
    for (const informer of informers) {
      informer.subscribe((change) => {
        list = undefined;
        changeLog.exchange(change.previous, change.kind === 'put' ? change.value : undefined);
        onChange(canWait(change));
      });
    }
    return () => {
      list ??= changeLog.mark(informers.flatMap(({ store }) => [...store.values()]));
      return list;
    };
  };
  const tunnels = listOf([caches.tunnels]);
  const policies = listOf([caches.policies, caches.clusterPolicies], isUnanswered);
  const namespaces = listOf([caches.namespaces]);
  const pods = listOf([caches.pods]);
  const rosters = listOf([caches.gateways]);
  caches.clusterInfos.subscribe(() => onChange(false));
  caches.ownNode.subscribe(() => onChange(false));
  // While a cache is read anew it has no version; what it held before still holds.
  let known: Revisions = { policies: undefined, clusterPolicies: undefined };
  // A status that goes away is an accident, and the cluster is where it was: without ranges policies would open (ADR 0025).
  let ranges: ClusterInput['ranges'];
  return {
    gather: () => {
      ranges = caches.clusterInfos.store.get(clusterInfoName)?.ranges ?? ranges;
      return {
        ranges,
        tunnels: tunnels(),
        policies: policies(),
        namespaces: namespaces(),
        pods: pods(),
      };
    },
    ownershipFacts: () => ({
      electorate: caches.clusterInfos.store.get(clusterInfoName)?.electorate,
      rosters: rosters(),
      tunnels: tunnels(),
      policies: policies(),
    }),
    tunnels,
    revisions: () => {
      known = {
        policies: caches.policies.version ?? known.policies,
        clusterPolicies: caches.clusterPolicies.version ?? known.clusterPolicies,
      };
      return known;
    },
    labels: () => caches.ownNode.store.get(node)?.labels ?? noLabels,
  };
};

const noLabels: Readonly<Record<string, string>> = {};

/** slot -> the policy that has it */
export const policyBySlot = (policies: readonly PolicyView[]): ReadonlyMap<number, PolicyKey> =>
  new Map(policies.flatMap(({ key, recorded: { slot } }) => (slot === undefined ? [] : [[slot, key]])));
