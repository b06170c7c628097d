/**
 * The API on a real API server: every CRD is taken, every valid manifest comes back unchanged but for defaults, every
 * invalid one is refused with a message that names the field and what is allowed.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { parseAllDocuments, stringify } from 'yaml';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { crdOf, schemaOf } from '../../src/api/crd.ts';
import { isKindName, type KindName, kinds } from '../../src/api/kinds.ts';
import type { StructuralSchema } from '../../src/api/structural.ts';
import { addressEntryText, gatewayOf, poolEntryTexts } from '../fixtures/api/arbitrary.ts';

const root = join(import.meta.dirname, '..', '..');
const commandLimitMs = 60_000;

interface Outcome {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

let controlPlane: BareControlPlane;

/** Runs kubectl against the test's API server; never throws for an exit code. */
function kubectl(args: readonly string[], input = ''): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(controlPlane.kubectl, ['--kubeconfig', controlPlane.kubeconfig, ...args], {
      timeout: commandLimitMs,
    });
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    child.on('error', reject);
    child.on('close', (exitCode) =>
      resolve({ exitCode, output: Buffer.concat(output).toString(), errors: Buffer.concat(errors).toString() }),
    );
    child.stdin.end(input);
  });
}

async function succeed(args: readonly string[], input?: string): Promise<string> {
  const { exitCode, output, errors } = await kubectl(args, input);
  assert.equal(exitCode, 0, `kubectl ${args.join(' ')}: ${errors}`);
  return output;
}

function manifestsIn(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.yaml') && name !== 'configuration.yaml')
    .map((name) => [basename(name, '.yaml'), readFileSync(join(root, folder, name), 'utf8')] as const);
}

function objectsIn(text: string): readonly Manifest[] {
  // A parse boundary: the fixtures are ours, and the API server judges them next.
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** Fills in the defaults of the schema as the API server does: a default applies where its parent is present. */
function withDefaults(value: unknown, schema: StructuralSchema): unknown {
  if (Array.isArray(value)) return value.map((item) => (schema.items ? withDefaults(item, schema.items) : item));
  if (typeof value !== 'object' || value === null) return value;
  const filled: Record<string, unknown> = { ...value };
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (filled[key] === undefined && child.default !== undefined) filled[key] = child.default;
    if (filled[key] !== undefined) filled[key] = withDefaults(filled[key], child);
  }
  return filled;
}

/** The fields that the API server itself adds to metadata. */
const serverFields = ['creationTimestamp', 'generation', 'managedFields', 'resourceVersion', 'uid'];

function withoutServerFields(object: Manifest): unknown {
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([key]) => !serverFields.includes(key)));
  return { ...object, metadata };
}

function kindOf(object: Manifest): KindName {
  assert.ok(isKindName(object.kind), `${object.kind} is one of our kinds`);
  return object.kind;
}

before(async () => {
  controlPlane = await startBareControlPlane({ log: (line) => console.log(line) });
  await succeed(['apply', '--server-side', '-f', join(root, 'charts', 'sallyport', 'files', 'crds')]);
  await succeed(['create', 'namespace', 'bcs-system']);
});
after(() => controlPlane?.stop());

test('every CRD establishes, with its short names and categories', async () => {
  const names = Object.values(kinds).map(({ plural, group }) => `crd/${plural}.${group}`);
  await succeed(['wait', '--for=condition=Established', '--timeout=180s', ...names]);
  const listed = await succeed(['api-resources', '--categories=sallyport', '-o', 'name']);
  assert.deepEqual(
    listed.trim().split('\n').toSorted(),
    Object.values(kinds)
      .map(({ plural, group }) => `${plural}.${group}`)
      .toSorted(),
  );
});

describe('valid manifests are taken and come back unchanged but for defaults', () => {
  for (const folder of ['test/fixtures/api/valid', 'docs/examples']) {
    for (const [name, text] of manifestsIn(folder)) {
      test(`${folder}: ${name}`, async () => {
        for (const object of objectsIn(text)) {
          const created = await succeed(['apply', '--server-side', '-f', '-', '-o', 'json'], stringify(object));
          const wanted = withDefaults(object, schemaOf(kindOf(object)));
          assert.deepEqual(withoutServerFields(JSON.parse(created)), wanted);
        }
        await succeed(['delete', '--timeout=180s', '-f', '-'], text);
      });
    }
  }
});

// Nothing is created here, so that the cases cannot disturb each other.
describe('invalid manifests are refused, naming the field and what is allowed', { concurrency: 4 }, () => {
  for (const [name, text] of manifestsIn('test/fixtures/api/invalid')) {
    test(name, async () => {
      const expected = /^# refused: (\S+): (.*)$/m.exec(text);
      assert.ok(expected, 'the first line says what is expected');
      const [, field = '', message = ''] = expected;
      const { exitCode, errors } = await kubectl(['create', '-f', '-'], text);
      assert.equal(exitCode, 1, 'kubectl create fails');
      assert.ok(errors.includes(field), `the message names ${field}: ${errors}`);
      assert.ok(errors.includes(message), `the message says "${message}": ${errors}`);
    });
  }
});

test('a BCSEgress may have as many rules as its lists hold, and the last of them is compared with all others', async () => {
  const tcp = Array.from({ length: 256 }, (_, index) => ({
    name: `tcp-${index}`,
    sourceport: 10_000 + index,
    destport: 80,
    ips: `host-${index}.example.com`,
  }));
  const http = Array.from({ length: 256 }, (_, index) => ({
    name: `http-${index}`,
    host: `host-${index}.example.com`,
  }));
  const create = (rules: object) => {
    const metadata = { name: 'large', namespace: 'default' };
    const object = { apiVersion: 'bkbcs.tencent.com/v1alpha1', kind: 'BCSEgress', metadata, spec: { rules } };
    return kubectl(['create', '--dry-run=server', '-f', '-'], stringify(object));
  };
  const { exitCode, errors } = await create({ tcp, http });
  assert.equal(exitCode, 0, errors);
  const first = { name: 'tcp-0', sourceport: 10_000, destport: 80, ips: '203.0.113.1' };
  const twice = await create({
    tcp: tcp.with(-1, first),
    http: http.with(-1, { name: 'http-0', host: 'a.example.com' }),
  });
  assert.match(twice.errors, /spec\.rules\.tcp: .*sourceport must be unique in this list/);
  assert.match(twice.errors, /spec\.rules\.tcp: .*name must be unique in this list/);
  assert.match(twice.errors, /spec\.rules\.http: .*name must be unique in this list/);
});

describe('status', () => {
  const tunnel = {
    apiVersion: 'egressgateway.spidernet.io/v1beta1',
    kind: 'EgressTunnel',
    metadata: { name: 'node-s' },
  };
  const patchStatus = (status: unknown) =>
    kubectl(['patch', 'egt', 'node-s', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]);

  test('is written through its own path only', async () => {
    await succeed(['create', '-f', '-'], stringify({ ...tunnel, status: { phase: 'Ready' } }));
    const status = await succeed(['get', 'egt', 'node-s', '-o', 'jsonpath={.status}']);
    assert.equal(status, '{"phase":"Pending"}', 'a create drops the status');
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'TunnelReady',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const { exitCode, errors } = await patchStatus({ phase: 'Ready', mark: '0x26000100', conditions: [condition] });
    assert.equal(exitCode, 0, errors);
    assert.match(await succeed(['get', 'egt', 'node-s', '--no-headers']), /0x26000100\s+Ready/);
  });

  test('a tunnel without address shows Pending: before anybody writes about it, and when its agent is the first', async () => {
    await succeed(['create', '-f', '-'], stringify({ ...tunnel, metadata: { name: 'node-p' } }));
    const shown = () => succeed(['get', 'egt', 'node-p', '--no-headers']);
    assert.match(await shown(), /^node-p\s+Pending\s/);
    const report = { status: { tunnel: { parent: { name: 'eth0' } }, lastHeartbeatTime: '2026-01-01T00:00:00Z' } };
    const patch = ['patch', 'egt', 'node-p', '--subresource=status', '--type=merge', '-p', JSON.stringify(report)];
    await succeed(patch);
    assert.match(await shown(), /^node-p\s+Pending\s/);
    await succeed(['delete', 'egt', 'node-p']);
  });

  test('refuses another mark, a bad mark and an unknown phase', async () => {
    for (const [status, message] of [
      [{ mark: '0x26000200' }, 'mark must not change once it is set'],
      [{ mark: '26' }, 'mark must be a hexadecimal number of at most 32 bits'],
      [{ phase: 'Fine' }, 'supported values: "Pending", "Init", "Failed", "Ready", "HeartbeatTimeout", "NodeNotReady"'],
    ] as const) {
      const { exitCode, errors } = await patchStatus(status);
      assert.equal(exitCode, 1);
      assert.ok(errors.includes(message), errors);
    }
    await succeed(['delete', 'egt', 'node-s']);
  });
});

test('an object stored before the rules can be edited where it is right', async () => {
  const definition = crdOf('EgressPolicy');
  const policy = {
    apiVersion: 'egressgateway.spidernet.io/v1beta1',
    kind: 'EgressPolicy',
    metadata: { name: 'old', namespace: 'default' },
    spec: { egressIP: { allocatorPolicy: 'roundrobin' }, appliedTo: { podSubnet: ['fd00:1/126'] } },
  };
  const apply = (crd: unknown) => succeed(['apply', '--server-side', '--force-conflicts', '-f', '-'], stringify(crd));
  const patch = (spec: unknown) => kubectl(['patch', 'egp', 'old', '--type=merge', '-p', JSON.stringify({ spec })]);

  await apply(withoutRules(definition));
  // The API server takes a moment to judge by a changed CRD.
  await eventually(async () => (await kubectl(['create', '-f', '-'], stringify(policy))).exitCode === 0);
  await apply(definition);
  const another = { ...policy, metadata: { ...policy.metadata, name: 'new' } };
  await eventually(
    async () => (await kubectl(['create', '--dry-run=server', '-f', '-'], stringify(another))).exitCode === 1,
  );

  const { exitCode, errors } = await patch({ priority: 7 });
  assert.equal(exitCode, 0, errors);
  const refused = await patch({ egressIP: { allocatorPolicy: 'weighted' } });
  assert.match(refused.errors, /spec\.egressIP\.allocatorPolicy: Unsupported value: "weighted"/);
  await succeed(['delete', 'egp', 'old']);
});

/** A copy of a CRD as an earlier version would have had it: no rules and no lists of allowed values. */
function withoutRules(crd: unknown): unknown {
  return JSON.parse(
    JSON.stringify(crd, (key, value) => (['enum', 'x-kubernetes-validations'].includes(key) ? undefined : value)),
  );
}

/** Asks again until the answer is yes; fails after the limit. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  const limit = AbortSignal.timeout(commandLimitMs);
  while (!(await isSo())) limit.throwIfAborted();
}

describe('CEL and zod judge alike', () => {
  test('on 1,000 address entries', async () => {
    const entries = fc.sample(addressEntryText, { numRuns: 1000, seed: 7 });
    const policy = {
      apiVersion: 'egressgateway.spidernet.io/v1beta1',
      kind: 'EgressPolicy',
      metadata: { name: 'entries', namespace: 'default' },
      spec: { appliedTo: { podSubnet: ['10.0.0.1'] }, destSubnet: entries },
    };
    const { errors } = await kubectl(['create', '--dry-run=server', '-f', '-'], stringify(policy));
    const byServer = new Set([...errors.matchAll(/spec\.destSubnet\[(\d+)\]/g)].map(([, index]) => Number(index)));
    const result = kinds.EgressPolicy.schema.safeParse(policy);
    const byZod = new Set(result.error?.issues.map(({ path }) => Number(path[2])));
    const differing = entries.filter((_, index) => byServer.has(index) !== byZod.has(index));
    assert.deepEqual(differing, []);
    assert.ok(byServer.size > 100 && byServer.size < 900, `both verdicts occur: ${byServer.size} refused`);
  });

  test('on 300 pairs of pools: what the server refuses is wrong, and it refuses most of what is wrong', async () => {
    const gateways = fc
      .sample(poolEntryTexts, { numRuns: 300, seed: 11 })
      .map((pools, index) => gatewayOf(`g${index}`, pools));
    const { output } = await kubectl(
      ['create', '--dry-run=server', '-f', '-'],
      gateways.map((gateway) => stringify(gateway)).join('---\n'),
    );
    const taken = new Set([...output.matchAll(/\/(g\d+) created/g)].map(([, name]) => name));
    const isRight = (gateway: (typeof gateways)[number]) => kinds.EgressGateway.schema.safeParse(gateway).success;
    const refusedThoughRight = gateways.filter((gateway) => isRight(gateway) && !taken.has(gateway.metadata.name));
    assert.deepEqual(refusedThoughRight, []);
    const wrong = gateways.filter((gateway) => !isRight(gateway));
    const refused = wrong.filter((gateway) => !taken.has(gateway.metadata.name));
    console.log(`pools: ${wrong.length} of 300 wrong, ${refused.length} of these refused by CEL`);
    assert.ok(refused.length > wrong.length / 2, `${refused.length} of ${wrong.length} wrong pairs are refused`);
  });
});
