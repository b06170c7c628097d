/** Pods that are plain objects: no kubelet runs them, and their addresses are what a test says. */
import { coreResources } from '../../src/controller/testing.ts';
import type { KubeClient } from '../../src/runtime/kube/client.ts';
import { coreResource, type KubeObject, type Resource } from '../../src/runtime/kube/resource.ts';
import type { World } from './controller-world.ts';

export const [, , pods] = coreResources as [Resource, Resource, Resource]; // The list has these three.
const serviceAccounts = coreResource('serviceaccounts', 'ServiceAccount', true);

/** The parts of a pod that tests choose. */
export interface PodWish {
  readonly labels?: Readonly<Record<string, string>>;
  readonly node?: string;
  readonly ip?: string;
  readonly hostNetwork?: boolean;
  readonly phase?: string;
}

/** Makes a namespace in which pods can be made. */
export const makePodNamespace = async (
  world: World,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> => {
  await world.namespace(name, labels);
  const account = { metadata: { namespace: name, name: 'default' } };
  await world.client.apply(serviceAccounts, account, { fieldManager: 'e2e' });
};

/** Makes a pod that runs and has an address. */
export const makePod = async (client: KubeClient, key: string, wish: PodWish = {}): Promise<void> => {
  const [namespace = '', name = ''] = key.split('/');
  const { labels = { app: 'shop' }, node = 'node-1', ip = '10.244.0.1', hostNetwork = false } = wish;
  const pod: KubeObject & { readonly spec: object } = {
    metadata: { namespace, name, labels },
    spec: {
      nodeName: node,
      hostNetwork,
      // Without a kubelet only a pod without a grace period ever goes.
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'nothing' }],
    },
  };
  await client.create(pods, pod);
  const { phase = 'Running' } = wish;
  const status = { phase, podIP: ip, podIPs: [{ ip }], hostIP: '192.0.2.1', hostIPs: [{ ip: '192.0.2.1' }] };
  const patch = { kind: 'merge', value: { status } } as const;
  await client.patch(pods, { namespace, name }, patch, { subresource: 'status' });
};

/** Deletes a pod. */
export const deletePod = async (client: KubeClient, key: string): Promise<void> => {
  const [namespace = '', name = ''] = key.split('/');
  await client.delete(pods, { namespace, name });
};
