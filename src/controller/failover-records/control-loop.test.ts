import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import { failoverNames } from '../../api/names.ts';
import { type Secret, secretResource } from '../../runtime/certs/secret.ts';
import { leaseResource } from '../../runtime/control/lease-record.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { coreResources, startControlLoop } from '../testing.ts';
import { failoverRecordsLoop } from './control-loop.ts';

const resources = [
  ...coreResources,
  ...Object.keys(kinds).filter(isKindName).map(resourceOf),
  secretResource,
  leaseResource,
];
const [secretKey, leaseKey] = [`sallyport/${failoverNames.secret}`, `sallyport/${failoverNames.lease}`];

let server: TestApiServer;
before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server?.stop());

const secret = (): Secret | undefined => server.read(secretResource, secretKey);
const key = (): string | undefined => secret()?.data?.key;

/** Runs the part on the server until the test is over. */
const withPart = async (work: (writes: () => number) => Promise<void>): Promise<void> => {
  const running = await startControlLoop({ access: server.access }, (deps) =>
    failoverRecordsLoop({ ...deps, randomBytes }),
  );
  try {
    await work(running.writes);
  } finally {
    await running.stop();
  }
};

describe('failoverRecordsPart', () => {
  it('makes both objects, and after a restart neither again', async () => {
    await withPart(async () => {
      await eventually('the key', () => Buffer.from(key() ?? '', 'base64').length === 32);
      await eventually('the Lease', () => server.read(leaseResource, leaseKey) !== undefined);
    });
    const before = key();
    await withPart(async (writes) => {
      assert.equal(writes(), 0);
      assert.equal(key(), before);
    });
  });

  it('makes a deleted Secret again with the keys that agents have, and a deleted Lease', async () => {
    await withPart(async () => {
      const data = { key: randomBytes(32).toString('base64'), previous: key() ?? '' };
      server.put(secretResource, {
        ...secret(),
        metadata: { name: failoverNames.secret, namespace: 'sallyport' },
        data,
      } as Secret);
      server.delete(secretResource, secretKey);
      await eventually('the Secret', () => secret() !== undefined);
      assert.deepEqual(secret()?.data, data);
      server.delete(leaseResource, leaseKey);
      await eventually('the Lease', () => server.read(leaseResource, leaseKey) !== undefined);
    });
  });

  it('replaces a key that is too short, and keeps the labels of the Secret', async () => {
    const labels = { team: 'network' };
    server.put(secretResource, {
      metadata: { name: failoverNames.secret, namespace: 'sallyport', labels },
      data: { key: 'c2hvcnQ=' },
    } as Secret);
    await withPart(async () => {
      await eventually('a key', () => Buffer.from(key() ?? '', 'base64').length === 32);
      assert.deepEqual(secret()?.metadata.labels, labels);
    });
  });
});
