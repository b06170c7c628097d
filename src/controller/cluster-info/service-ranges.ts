/**
 * Where Service ranges are found: the ServiceCIDR API, and the flags of the control plane's pods for clusters without
 * it. Flags are read when they are needed; nothing tells us when they change, so they are read again now and then.
 */
import { isForbidden } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { coreResource, type KubeObject, type Resource } from '../../runtime/kube/resource.ts';
import type { Reading } from './kind-source.ts';

/** Served since Kubernetes 1.33. */
export const serviceCidrResource: Resource = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'servicecidrs',
  kind: 'ServiceCIDR',
  namespaced: false,
};

/** Where the pods of the control plane are, if the cluster has them. */
export const podResource = coreResource('pods', 'Pod', true);

/** Service ranges, and where they were looked for. */
export interface ServiceRanges {
  readonly source: string;
  readonly cidrs: readonly string[];
}

type ServiceCidrObject = KubeObject & { readonly spec?: { readonly cidrs?: readonly string[] } };

/** The ranges of one ServiceCIDR. */
export const projectServiceCidr = ({ spec }: ServiceCidrObject): readonly string[] => spec?.cidrs ?? [];

/** What the ServiceCIDR API says. */
export const rangesOfApi = (reading: Reading<readonly string[]>): ServiceRanges => {
  const source = 'the ServiceCIDR API';
  switch (reading.kind) {
    case 'present':
      return { source, cidrs: reading.values.flat() };
    case 'absent':
      return { source: `${source} (${reading.why})`, cidrs: [] };
    case 'waiting':
      return { source: `${source} (not answered yet)`, cidrs: [] };
    default:
      return reading satisfies never;
  }
};

/** A pod, as far as its command line goes. */
export type CommandObject = KubeObject & {
  readonly spec?: {
    readonly containers?: readonly { readonly command?: readonly string[]; readonly args?: readonly string[] }[];
  };
};

/** Labels of the pods whose flags are read, as kubeadm and others set them. The first that names ranges counts. */
const controlPlaneSelectors = [
  'component=kube-apiserver',
  'component=kube-controller-manager',
  'k8s-app=kube-apiserver',
  'k8s-app=kube-controller-manager',
];

/** The flags of the control plane's pods. Managed clusters have no such pods: then there are no ranges. */
export class ControlPlaneFlags {
  readonly #client: KubeClient;
  #found: ServiceRanges | undefined;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** Reads the flags. Ranges that were found stay: a control plane that restarts has no pods for a moment. */
  async read(signal: AbortSignal): Promise<ServiceRanges> {
    const now = await readFlags(this.#client, signal);
    if (now.cidrs.length > 0) this.#found = now;
    return this.#found ?? now;
  }
}

const readFlags = async (client: KubeClient, signal: AbortSignal): Promise<ServiceRanges> => {
  const source = 'flags of the control plane';
  try {
    for (const labelSelector of controlPlaneSelectors) {
      const options = { namespace: 'kube-system', labelSelector, signal };
      for await (const { items } of client.list<CommandObject>(podResource, options)) {
        const cidrs = rangesOfFlags(items);
        if (cidrs.length > 0) return { source: `${source} (${labelSelector})`, cidrs };
      }
    }
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return { source: `${source} (reading is forbidden)`, cidrs: [] };
  }
  return { source, cidrs: [] };
};

// As one word with `=`, as two words, and inside of a shell command.
const rangeFlag = /--service-cluster-ip-range[=\s]+["']?([0-9a-fA-F.:/,]+)/;

/** The ranges that the first pod with the flag names; empty when none has it. Pure. */
export const rangesOfFlags = (pods: readonly CommandObject[]): readonly string[] => {
  for (const { spec } of pods) {
    for (const { command = [], args = [] } of spec?.containers ?? []) {
      const ranges = rangeFlag.exec([...command, ...args].join(' '))?.[1];
      if (ranges !== undefined) return ranges.split(',').filter((range) => range !== '');
    }
  }
  return [];
};
