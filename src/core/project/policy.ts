/** PolicyView from an EgressPolicy or EgressClusterPolicy. */
import { EgressClusterPolicySpec } from '../../api/egress-cluster-policy.ts';
import { EgressPolicySpec } from '../../api/egress-policy.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import { PolicyStatus } from '../../api/policy.ts';
import type { Finding } from '../cluster/finding.ts';
import { compileSelector, everything, nothing, type Selector } from '../cluster/labels.ts';
import {
  type AddressRequest,
  type AppliedTo,
  type PolicySpecView,
  type PolicyView,
  policyKey,
  type RecordedBinding,
} from '../cluster/view.ts';
import { ipv4OrNone, ipv6OrNone, readEip, readSet } from './address.ts';
import { type ApiObject, createdAtMsOf, readSpec, readStatus, type SpecFault } from './api-object.ts';

type AnyPolicySpec = EgressPolicySpec | EgressClusterPolicySpec;

/** The part of a status that says what was allocated. */
const AllocationStatus = PolicyStatus.pick({ eip: true, gateway: true, node: true, slot: true, epoch: true });

/** The view of a namespaced policy. Total: what cannot be read is in `problems`. `before` is the last view of it, if any. */
export const projectPolicy = (object: ApiObject, before?: PolicyView): PolicyView =>
  project(object, 'EgressPolicy', before);

/** The view of a cluster policy. Total: what cannot be read is in `problems`. `before` is the last view of it, if any. */
export const projectClusterPolicy = (object: ApiObject, before?: PolicyView): PolicyView =>
  project(object, 'EgressClusterPolicy', before);

const project = (object: ApiObject, kind: PolicyView['kind'], before: PolicyView | undefined): PolicyView => {
  const { metadata } = object;
  const isDeleting = metadata.deletionTimestamp !== undefined;
  const recorded = recordOf(readStatus(AllocationStatus, object));
  // The API server counts changes of the spec. Most changes are of the status, and a spec takes long to read.
  const isSameSpec =
    metadata.uid !== undefined && before?.uid === metadata.uid && before.generation === metadata.generation;
  if (isSameSpec) return { ...before, isDeleting, recorded };
  const namespace = kind === 'EgressPolicy' ? (metadata.namespace ?? '') : undefined;
  const key = policyKey(namespace, metadata.name);
  const who = `${kind} ${key}`;
  const problems: Finding[] = [];
  const parsed =
    kind === 'EgressPolicy' ? readSpec(EgressPolicySpec, object, who) : readSpec(EgressClusterPolicySpec, object, who);
  problems.push(...parsed.faults.map((fault) => fault.finding));
  return {
    key,
    kind,
    namespace,
    name: metadata.name,
    // A uid is missing only in manifests that were never applied, as the CLI may read them.
    uid: metadata.uid ?? key,
    createdAtMs: createdAtMsOf(metadata),
    generation: metadata.generation ?? 0,
    isDeleting,
    spec: parsed.value && specOf(parsed.value, parsed.faults, kind, who, problems),
    recorded,
    problems,
  };
};

const specOf = (
  spec: AnyPolicySpec,
  faults: readonly SpecFault[],
  kind: PolicyView['kind'],
  who: string,
  problems: Finding[],
): PolicySpecView => {
  const hasDestinations = (spec.destSubnet ?? []).length > 0;
  return {
    gatewayName: spec.egressGatewayName ?? '',
    address: addressOf(spec.egressIP, who, problems),
    appliedTo: selectsTooMuch(faults) ? nobody : appliedToOf(spec.appliedTo, kind, who, problems),
    destinations: hasDestinations ? readSet(spec.destSubnet, `${who}: destSubnet`, problems) : undefined,
    exceptions: readSet(spec.exceptSubnet, `${who}: exceptSubnet`, problems),
    priority: spec.priority ?? 0,
    onUnavailable: spec.onUnavailable,
    onExistingConnections: spec.onExistingConnections,
  };
};

// Without its rules, an empty appliedTo would mean every pod, and a NotIn without values too.
const nobody: AppliedTo = { kind: 'labels', pods: nothing, namespaces: nothing };
const selectsTooMuch = (faults: readonly SpecFault[]): boolean =>
  faults.some(({ path }) => path[0] === 'appliedTo' && path[1] !== 'podSubnet');

const addressOf = (egressIp: AnyPolicySpec['egressIP'], who: string, problems: Finding[]): AddressRequest => {
  if (egressIp.useNodeIP) return { kind: 'nodeIp' };
  const eip = readEip(egressIp, `${who}: egressIP`, problems);
  if (eip.ipv4 !== undefined || eip.ipv6 !== undefined) return { kind: 'given', eip };
  return { kind: 'allocated', allocator: egressIp.allocatorPolicy === '' ? 'default' : egressIp.allocatorPolicy };
};

interface AppliedToSpec {
  readonly podSelector?: LabelSelector | undefined;
  readonly podSubnet?: readonly string[] | undefined;
  readonly namespaceSelector?: LabelSelector | undefined;
}

const appliedToOf = (applied: AppliedToSpec, kind: PolicyView['kind'], who: string, problems: Finding[]): AppliedTo => {
  const selector = (given: LabelSelector | undefined, field: string): Selector => {
    const compiled = compileSelector(given, `${who}: ${field}`);
    if (compiled.ok) return compiled.value;
    problems.push(compiled.finding);
    return nothing;
  };
  const namespaces =
    kind === 'EgressClusterPolicy' ? selector(applied.namespaceSelector, 'appliedTo.namespaceSelector') : undefined;
  if ((applied.podSubnet ?? []).length > 0) {
    return { kind: 'subnet', subnet: readSet(applied.podSubnet, `${who}: podSubnet`, problems), namespaces };
  }
  const pods = applied.podSelector === undefined ? everything : selector(applied.podSelector, 'appliedTo.podSelector');
  return { kind: 'labels', pods, namespaces };
};

const recordOf = (status: Pick<PolicyStatus, keyof typeof AllocationStatus.shape> | undefined): RecordedBinding => {
  const ipv4 = ipv4OrNone(status?.eip?.ipv4);
  const ipv6 = ipv6OrNone(status?.eip?.ipv6);
  return {
    eip: { ipv4, ipv6 },
    gateway: status?.gateway || undefined,
    node: status?.node || undefined,
    slot: status?.slot,
    epoch: status?.epoch ?? 0,
  };
};
