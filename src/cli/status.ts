/**
 * StatusReport is what `status` answers: how gateways, policies and nodes stand, and everything that is not fine with
 * its reason and remedy. It repeats what the controller and the agents wrote into the objects and decides nothing.
 */
import type { AddressLists, Condition } from '../api/condition.ts';
import { EgressClusterInfoStatus } from '../api/egress-cluster-info.ts';
import { EgressGatewayStatus } from '../api/egress-gateway.ts';
import { EgressTunnelStatus } from '../api/egress-tunnel.ts';
import { PolicyStatus } from '../api/policy.ts';
import type { ConditionType } from '../api/reason.ts';
import { isReason, reasons } from '../api/reasons.ts';
import { conflictFinding } from '../core/gateways/conflicts.ts';
import { readStatus } from '../core/project/api-object.ts';
import { projectTunnel } from '../core/project/index.ts';
import { detectionFinding } from '../core/tunnels/detection.ts';
import { keyOf } from '../runtime/kube/resource.ts';
import { type OwnershipReport, ownershipOf } from './owners.ts';
import type { OwnObjects, ServedObject, ServedProgram } from './read.ts';

/** How everything stands. Lists are sorted by name. */
export interface StatusReport {
  /** True when `problems` is empty. */
  readonly isFine: boolean;
  /** Everything that is not fine. */
  readonly problems: readonly Problem[];
  /** What is good to know and needs nobody to act now. */
  readonly notes: readonly Problem[];
  readonly programs: readonly ProgramLine[];
  readonly gateways: readonly GatewayLine[];
  readonly policyCount: number;
  readonly nodeCount: number;
  /** Who owns which EIP; undefined while no nodes vote on that. */
  readonly ownership: OwnershipReport | undefined;
  /** What belongs to the cluster itself; undefined while nobody has looked. */
  readonly clusterInfo: Ranges | undefined;
}

/** Something that is not fine. */
export interface Problem {
  readonly about: 'program' | 'gateway' | 'policy' | 'node' | 'clusterInfo';
  /** `namespace/name`, or `name` for what has no namespace. */
  readonly name: string;
  /** Of the typed list; undefined where no condition says it. */
  readonly reason: string | undefined;
  readonly sentence: string;
  /** What to do; undefined when there is nothing to do but wait. */
  readonly remedy: string | undefined;
}

export interface ProgramLine {
  readonly name: string;
  readonly ready: number;
  readonly wanted: number;
  /** False also for a program that is scaled to nothing: it does nothing. */
  readonly isReady: boolean;
}

export interface GatewayLine {
  readonly name: string;
  readonly ipv4: PoolLine;
  readonly ipv6: PoolLine;
  readonly nodes: readonly {
    readonly name: string;
    readonly phase: string;
    /** `10.6.1.1`, or a pair as `10.6.1.1 fd00::1`; `node IP` stands for the address of the node. */
    readonly eips: readonly string[];
    readonly policyCount: number;
  }[];
}

/** How many addresses of a pool are EIPs of somebody. */
export interface PoolLine {
  readonly used: number;
  readonly total: number;
}

/** Ranges of the cluster as texts, by what they are. */
export type Ranges = Readonly<Record<'pods' | 'services' | 'nodes' | 'apiServers' | 'custom', readonly string[]>>;

/** Puts the report together. */
export const statusOf = (objects: OwnObjects, served: readonly ServedProgram[]): StatusReport => {
  const policies = [...objects.policies, ...objects.clusterPolicies].sort(byKey);
  const gateways = objects.gateways.toSorted(byKey);
  const tunnels = objects.tunnels.toSorted(byKey);
  const programs = served.toSorted(byKey).map(programLine);
  const problems = [
    ...(programs.length === 0 ? [noProgram] : programs.flatMap(programProblem)),
    ...gateways.flatMap((object) => conditionProblem('gateway', object, ['Accepted', 'Ready'])),
    ...policies.flatMap((object) => conditionProblem('policy', object, ['Accepted', 'Allocated', 'Programmed'])),
    ...tunnels.flatMap(nodeProblems),
    ...clusterInfoProblem(objects.clusterInfo),
  ];
  return {
    isFine: problems.length === 0,
    problems,
    notes: tunnels.flatMap(nodeNotes),
    programs,
    gateways: gateways.map(gatewayLine),
    policyCount: policies.length,
    nodeCount: tunnels.length,
    ownership: ownershipOf({ ...objects, gateways, tunnels }),
    clusterInfo: rangesOf(objects.clusterInfo),
  };
};

const byKey = (a: ServedObject, b: ServedObject): number => (keyOf(a) < keyOf(b) ? -1 : 1);

const programLine = (object: ServedProgram): ProgramLine => {
  const { spec, status } = object;
  const ready = status?.numberReady ?? status?.readyReplicas ?? 0;
  const wanted = status?.desiredNumberScheduled ?? spec?.replicas ?? 1;
  return { name: keyOf(object), ready, wanted, isReady: ready >= wanted && wanted > 0 };
};

/** Objects stay when the chart is removed, and look as fine as on the last day. */
const noProgram: Problem = {
  about: 'program',
  name: 'sallyport',
  reason: undefined,
  sentence: 'The cluster has no controller and no agent of the chart, so this status may be out of date.',
  remedy: 'Install the chart. If the programs run in another way, check them there.',
};

const programProblem = ({ name, ready, wanted, isReady }: ProgramLine): Problem[] =>
  isReady
    ? []
    : [
        {
          about: 'program',
          name,
          reason: undefined,
          sentence: `${ready} of ${wanted} pods are ready.`,
          remedy: 'Check the pods and their logs.',
        },
      ];

const gatewayLine = (object: ServedObject): GatewayLine => {
  const { nodeList = [], ipUsage } = readStatus(EgressGatewayStatus, object) ?? {};
  const eips = nodeList.flatMap((node) => node.eips ?? []);
  return {
    name: object.metadata.name,
    ipv4: { used: eips.filter(({ ipv4 }) => ipv4).length, total: ipUsage?.ipv4Total ?? 0 },
    ipv6: { used: eips.filter(({ ipv6 }) => ipv6).length, total: ipUsage?.ipv6Total ?? 0 },
    nodes: nodeList.map(({ name = '', status = '', eips: carried = [] }) => ({
      name,
      phase: status,
      eips: carried.map(({ ipv4, ipv6 }) => [ipv4, ipv6].filter(Boolean).join(' ') || 'node IP'),
      policyCount: carried.reduce((sum, { policies = [] }) => sum + policies.length, 0),
    })),
  };
};

const schemas = { gateway: EgressGatewayStatus, policy: PolicyStatus } as const;

/** The first of these conditions that does not hold: those after it only follow from it. */
const conditionProblem = (
  about: 'gateway' | 'policy',
  object: ServedObject,
  types: readonly ConditionType[],
): readonly Problem[] => {
  const { generation = 0, deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined) return [];
  const name = keyOf(object);
  const conditions: readonly Condition[] = readStatus(schemas[about], object)?.conditions ?? [];
  for (const type of types) {
    const condition = conditions.find((candidate) => candidate.type === type);
    if (condition === undefined) return [unseen(about, name, 'The controller has not reconciled it yet.')];
    if ((condition.observedGeneration ?? generation) < generation) {
      return [unseen(about, name, 'The controller has not reconciled its last change yet.')];
    }
    if (condition.status !== 'True') return [problemOf(about, name, condition)];
  }
  return [];
};

const unseen = (about: Problem['about'], name: string, sentence: string): Problem => ({
  about,
  name,
  reason: undefined,
  sentence,
  remedy: 'Wait a moment, then check the controller.',
});

/** A condition or a line of a node report as a problem. Messages end with the remedy of their reason: it is told once. */
const problemOf = (
  about: Problem['about'],
  name: string,
  { reason, message }: { readonly reason: string; readonly message: string },
): Problem => {
  const described = isReason(reason) ? reasons[reason] : undefined;
  const remedy = described?.remedy === 'Nothing.' ? undefined : described?.remedy;
  const sentence = remedy !== undefined && message.endsWith(remedy) ? message.slice(0, -remedy.length) : message;
  return { about, name, reason, sentence: sentence.trim(), remedy };
};

const nodeProblems = (object: ServedObject): Problem[] => {
  const { name } = object.metadata;
  const status = readStatus(EgressTunnelStatus, object);
  if (status === undefined || (status.phase ?? 'Pending') === 'Pending') {
    return [unseen('node', name, 'The controller has not assigned a tunnel to it yet.')];
  }
  const told = status.conditions?.find(({ type, status: holds }) => type === 'Ready' && holds !== 'True');
  const phase = told === undefined ? [] : [problemOf('node', name, told)];
  const reported = (status.report?.problems ?? [])
    // What keeps the whole tunnel down is the condition already.
    .filter(({ reason }) => reason !== told?.reason)
    .map((problem) => problemOf('node', name, problem));
  const { conflicts } = projectTunnel(object, 'never');
  const found = conflicts.map((conflict) => conflictFinding(name, conflict));
  for (const { reason, sentence: message } of found) reported.push(problemOf('node', name, { reason, message }));
  const unlisted = status.report?.unlistedProblems ?? 0;
  if (unlisted > 0) {
    const message = `It has ${unlisted} more problems that do not fit into its report.`;
    reported.push(problemOf('node', name, { reason: 'ProblemsNotListed', message }));
  }
  if (phase.length > 0 || status.phase === 'Ready') return [...phase, ...reported];
  return [unseen('node', name, `Its tunnel is in phase ${status.phase}.`), ...reported];
};

/** A busy node is no fault: its EIPs stay where they are, and only a loss would be noticed later. */
const nodeNotes = (object: ServedObject): Problem[] => {
  const { name } = object.metadata;
  const { detectionMs } = projectTunnel(object, 'never');
  if (detectionMs === undefined) return [];
  const { reason, sentence: message } = detectionFinding(name, detectionMs);
  return [problemOf('node', name, { reason, message })];
};

const clusterInfoProblem = (object: ServedObject | undefined): readonly Problem[] => {
  const name = object?.metadata.name ?? 'default';
  const detected =
    object && readStatus(EgressClusterInfoStatus, object)?.conditions?.find(({ type }) => type === 'Detected');
  if (detected === undefined)
    return [unseen('clusterInfo', name, 'The controller has not detected yet which addresses belong to the cluster.')];
  return detected.status === 'True' ? [] : [problemOf('clusterInfo', name, detected)];
};

const rangesOf = (object: ServedObject | undefined): Ranges | undefined => {
  const ignored = object && readStatus(EgressClusterInfoStatus, object)?.egressIgnoreCIDR;
  if (ignored === undefined) return undefined;
  const both = (lists: AddressLists | undefined): readonly string[] => [...(lists?.ipv4 ?? []), ...(lists?.ipv6 ?? [])];
  return {
    pods: both(ignored.podCIDR),
    services: both(ignored.clusterIP),
    nodes: both(ignored.nodeIP),
    apiServers: both(ignored.apiServer),
    custom: both(ignored.custom),
  };
};
