/** Why pods of a proxy do not become ready, in the words of the scheduler and the kubelet. Pure. */
import { type Finding, finding } from '../../core/cluster/finding.ts';
import type { KubeObject } from '../../runtime/kube/resource.ts';

/** What is read of a pod for it. */
export interface TroubledPod extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly PodCondition[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

interface ContainerStatus {
  readonly name: string;
  readonly image?: string;
  readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
  readonly lastState?: { readonly terminated?: { readonly exitCode?: number; readonly reason?: string } };
}

const imageReasons = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull']);
const startReasons = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
/** A message of somebody else stays one that can be read. */
const maxLength = 400;

/** What keeps a pod from being ready for longer than a start takes; undefined when nothing is known to. */
export const podTrouble = ({ metadata, status }: TroubledPod): Finding | undefined => {
  const pod = `Pod ${metadata.name}`;
  const unplaced = status?.conditions?.find(
    ({ type, status: value, reason }) => type === 'PodScheduled' && value === 'False' && reason === 'Unschedulable',
  );
  if (unplaced !== undefined) {
    return finding('PodUnschedulable', `${pod} finds no node: ${sentence(unplaced.message)}`);
  }
  for (const { name, image = 'of the container', state, lastState } of status?.containerStatuses ?? []) {
    const { reason = '', message } = state?.waiting ?? {};
    if (imageReasons.has(reason)) {
      return finding(
        'ImageNotPulled',
        `${pod} waits for the image ${image}: ${sentence(pullError(message) ?? reason)}`,
      );
    }
    if (startReasons.has(reason)) {
      return finding(
        'ContainerFailing',
        `Container ${name} of ${metadata.name} cannot be started: ${sentence(message ?? reason)}`,
      );
    }
    if (reason === 'CrashLoopBackOff') {
      // The message of Kubernetes has the time to the next start in it, which changes.
      const { exitCode, reason: how } = lastState?.terminated ?? {};
      const end =
        exitCode === undefined ? 'ends' : `ends with exit code ${exitCode}${how === undefined ? '' : ` (${how})`}`;
      return finding('ContainerFailing', `Container ${name} of ${metadata.name} ${end} again and again.`);
    }
  }
  return undefined;
};

/** Why a Deployment cannot even make its pods, such as a quota; undefined when it can. */
export const deploymentTrouble = (
  deployment: KubeObject & { readonly status?: { readonly conditions?: readonly PodCondition[] } },
): Finding | undefined => {
  const failure = deployment.status?.conditions?.find(
    ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
  );
  return failure === undefined
    ? undefined
    : finding(
        'WorkloadRefused',
        `Pods of Deployment ${deployment.metadata.name} cannot be made: ${sentence(failure.message)}`,
      );
};

/** The kubelet says in turn why it failed and that it waits, with the why behind it: the why alone stays the same. */
const pullError = (message: string | undefined): string | undefined => message?.replace(/^.*?ErrImagePull: /, '');

const sentence = (text = 'no reason was given'): string => `${text.slice(0, maxLength).replace(/[\s.]+$/, '')}.`;
