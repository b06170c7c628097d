/** failoverRecordsLoop makes what agents share to agree on the owners of EIPs: the key of their messages, and a Lease. */
import { failoverNames } from '../../api/names.ts';
import { type Secret, secretResource } from '../../runtime/certs/secret.ts';
import { Controller, type ReconcileResult } from '../../runtime/control/controller.ts';
import { leaseResource } from '../../runtime/control/lease-record.ts';
import { watch } from '../../runtime/control/watch.ts';
import { isAlreadyExists, isConflict } from '../../runtime/kube/api-error.ts';
import { Informer } from '../../runtime/kube/informer.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { messageOf } from '../../runtime/process/bug.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';

/** As long as what HMAC-SHA256 gives: a longer key adds nothing, a shorter one is easier to guess. */
const KEY_BYTES = 32;

/** What the part needs besides: randomness that nobody can guess. */
export interface RecordsDeps extends ControlLoopDeps {
  readonly randomBytes: (count: number) => Buffer;
}

/** Makes the part. It follows the two objects only while it runs. */
export const failoverRecordsLoop = (deps: RecordsDeps): ControlLoop => {
  const log = deps.log.child({ component: 'failover-records' });
  const secrets = informerOf<Secret>(deps, secretResource, failoverNames.secret);
  const leases = informerOf<KubeObject>(deps, leaseResource, failoverNames.lease);
  const keepByName: ReadonlyMap<string, Keep> = new Map([
    [failoverNames.secret, keySecret({ ...deps, log }, secrets)],
    [failoverNames.lease, ownershipLease({ ...deps, log }, leases)],
  ]);
  const controller = new Controller(
    {
      name: 'failover-records',
      watches: [
        { ...watch('secret', secrets, () => [failoverNames.secret]), presentKeys: () => [failoverNames.secret] },
        { ...watch('lease', leases, () => [failoverNames.lease]), presentKeys: () => [failoverNames.lease] },
      ],
      reconcile: async (key, signal) => (await keepByName.get(key)?.(signal)) ?? { kind: 'done' },
    },
    { ...deps, hooks: deps.metrics.controller('failover-records') },
  );
  deps.metrics.observeQueue(controller);
  return {
    name: 'failover-records',
    missing: () => {
      const missing = controller.missing();
      return missing === undefined ? [] : [missing];
    },
    run: async (signal) => {
      await Promise.all([controller.run(signal), secrets.run(signal), leases.run(signal)]);
    },
  };
};

const informerOf = <T extends KubeObject>(
  { client, clock, random, log, site: { namespace } }: RecordsDeps,
  resource: Resource,
  name: string,
): Informer<T, never, T> =>
  new Informer({
    ...{ client, clock, random, resource },
    project: (object: T) => object,
    scope: { namespace, fieldSelector: `metadata.name=${name}` },
    onProblem: ({ kind, error }) =>
      log.warn(
        { component: 'failover-records', reason: kind },
        `cannot follow ${resource.plural}: ${messageOf(error)}`,
      ),
  });

type Keep = (signal: AbortSignal) => Promise<ReconcileResult>;
type ObjectSource<T extends KubeObject> = Pick<Informer<T, never, T>, 'store' | 'subscribe'>;

const keySecret = (
  { client, site: { namespace }, log, randomBytes }: RecordsDeps,
  found: ObjectSource<Secret>,
): Keep => {
  const name = failoverNames.secret;
  /** What agents have now, should the Secret be deleted. */
  let known: Secret['data'] | undefined;
  found.subscribe((change) => {
    if (change.kind === 'put' && isLongEnough(change.value.data?.key)) known = change.value.data;
  });
  return async (signal) => {
    const secret = found.store.get(`${namespace}/${name}`);
    if (isLongEnough(secret?.data?.key)) return { kind: 'done' };
    const made: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: secret?.metadata ?? { name, namespace },
      type: secret?.type ?? 'Opaque',
      data: known ?? { key: randomBytes(KEY_BYTES).toString('base64') },
    };
    const write =
      secret === undefined
        ? client.create(secretResource, made, { signal })
        : client.update(secretResource, made, { signal });
    if (await isWritten(write)) log.info({ key: `${namespace}/${name}` }, 'key of heartbeats made');
    return { kind: 'done' };
  };
};

const isLongEnough = (key: string | undefined): boolean => Buffer.from(key ?? '', 'base64').length >= KEY_BYTES;

const ownershipLease = ({ client, site: { namespace }, log }: RecordsDeps, found: ObjectSource<KubeObject>): Keep => {
  const name = failoverNames.lease;
  return async (signal) => {
    if (found.store.get(`${namespace}/${name}`) !== undefined) return { kind: 'done' };
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace }, spec: {} };
    if (await isWritten(client.create(leaseResource, lease, { signal }))) {
      log.info({ key: `${namespace}/${name}` }, 'Lease for the vote of the API server made');
    }
    return { kind: 'done' };
  };
};

/** False when somebody else was faster; the informer tells what they wrote. */
const isWritten = async (write: Promise<unknown>): Promise<boolean> => {
  try {
    await write;
    return true;
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error)) return false;
    throw error;
  }
};
