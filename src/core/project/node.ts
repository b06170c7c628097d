/** Views of the objects of Kubernetes itself: Node, Namespace and Pod. */
import { annotations } from '../../api/names.ts';
import type { NamespaceView, NodeView, PodView } from '../cluster/view.ts';
import { type Cidr, isIpv4, isIpv6, parseCidrMasking } from '../ip/index.ts';
import { ipOrNone } from './address.ts';
import type { Metadata } from './api-object.ts';

/** The fields of a Node that are read. */
export interface NodeObject {
  readonly metadata: Metadata;
  readonly spec?:
    | {
        readonly podCIDR?: string | undefined;
        readonly podCIDRs?: readonly string[] | undefined;
        readonly taints?: readonly { readonly key: string }[] | undefined;
      }
    | undefined;
  readonly status?:
    | {
        readonly addresses?: readonly { readonly type: string; readonly address: string }[] | undefined;
        readonly conditions?: readonly { readonly type: string; readonly status: string }[] | undefined;
      }
    | undefined;
}

/** The fields of a Namespace that are read; its metadata alone is enough. */
export interface NamespaceObject {
  readonly metadata: Metadata;
}

/** The fields of a Pod that are read. */
export interface PodObject {
  readonly metadata: Metadata;
  readonly spec?: { readonly nodeName?: string | undefined; readonly hostNetwork?: boolean | undefined } | undefined;
  readonly status?:
    | {
        readonly phase?: string | undefined;
        readonly podIP?: string | undefined;
        readonly podIPs?: readonly { readonly ip?: string | undefined }[] | undefined;
      }
    | undefined;
}

const ADDRESS_TYPES = ['InternalIP', 'ExternalIP'];

/** The view of a node. Names among its addresses are left out, and so is any text that is not an address. */
export const projectNode = ({ metadata, spec, status }: NodeObject): NodeView => ({
  name: metadata.name,
  isReady: (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True'),
  isDraining: metadata.annotations?.[annotations.drain] === 'true',
  labels: metadata.labels ?? {},
  addresses: (status?.addresses ?? [])
    .filter(({ type }) => ADDRESS_TYPES.includes(type))
    .map(({ address }) => ipOrNone(address))
    .filter((ip) => ip !== undefined),
  podCidrs: (spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : [])).flatMap((text): Cidr[] => {
    const cidr = parseCidrMasking(text);
    return cidr.ok ? [cidr.value] : [];
  }),
});

/** The view of a namespace. */
export const projectNamespace = ({ metadata }: NamespaceObject): NamespaceView => ({
  name: metadata.name,
  labels: metadata.labels ?? {},
});

/** The view of a pod. */
export const projectPod = ({ metadata, spec, status }: PodObject): PodView => {
  const texts = status?.podIPs?.map(({ ip }) => ip) ?? [status?.podIP];
  const ips = [...new Set(texts.map(ipOrNone).filter((ip) => ip !== undefined))];
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    node: spec?.nodeName || undefined,
    labels: metadata.labels ?? {},
    ipv4: ips.filter(isIpv4),
    ipv6: ips.filter(isIpv6),
    isHostNetwork: spec?.hostNetwork === true,
    isFinished: status?.phase === 'Succeeded' || status?.phase === 'Failed',
  };
};
