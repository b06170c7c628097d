/** Our kinds on a bare API server, straight from src/api: for tests and benchmarks that install no chart. */
import { crdOf } from '../src/api/crd.ts';
import { isKindName, kinds, resourceOf } from '../src/api/kinds.ts';
import type { KubeClient } from '../src/runtime/kube/client.ts';
import type { KubeObject, Resource } from '../src/runtime/kube/resource.ts';
import { until } from './host/wait.ts';

const definitions: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};

/** Installs every kind and returns when the API server serves them. May be called twice. */
export async function installCrds(client: KubeClient): Promise<void> {
  const names = Object.keys(kinds).filter(isKindName);
  for (const name of names) {
    // The generator makes plain data in the shape of a CRD; the server judges it next.
    await client.apply(definitions, crdOf(name) as unknown as KubeObject, { fieldManager: 'lab' });
  }
  for (const name of names) {
    await until({ what: `the API server to serve ${name}`, limitMs: 30_000 }, async () => {
      for await (const _ of client.list(resourceOf(name), { retries: 0 })) return true;
      return false;
    });
  }
}
