import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { ManualClock } from '../process/clock.ts';
import type { AccessDeps, ExecResult } from './access.ts';
import { loadAccess, systemAccessDeps } from './load-access.ts';

const pem = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----';
const base64 = (text: string) => Buffer.from(text).toString('base64');
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';
const inPod = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };

/** A machine with files, a clock, and one program that prints what the test says. */
function machine(env: Record<string, string>, files: Record<string, string>) {
  const clock = new ManualClock();
  const state = {
    files: new Map(Object.entries(files)),
    runs: 0,
    says: (): ExecResult => ({ exitCode: 1, stdout: '', stderr: '' }),
  };
  const seenEnv: NodeJS.ProcessEnv[] = [];
  const deps: AccessDeps = {
    clock,
    env,
    readFile: async (path) => {
      const text = state.files.get(path);
      if (text === undefined)
        throw Object.assign(new Error(`ENOENT: no such file, open '${path}'`), { code: 'ENOENT' });
      return text;
    },
    exec: async (_command, _args, options) => {
      state.runs += 1;
      seenEnv.push(options.env);
      return state.says();
    },
  };
  return { clock, deps, state, seenEnv };
}

function refusal(pattern: RegExp) {
  return (error: unknown) =>
    error instanceof EgressError && error.code === 'KUBECONFIG_INVALID' && pattern.test(error.message);
}

function kubeconfig(cluster: string, user: string): string {
  return `
current-context: c
clusters: [{ name: k, cluster: { server: "https://k:6443/prefix/", ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
contexts: [{ name: c, context: { cluster: k, user: u } }]
`;
}

test('in a pod: the service account, whose renewed token is taken up', async () => {
  const { clock, deps, state } = machine(inPod, {
    [`${serviceAccount}/token`]: 'first\n',
    [`${serviceAccount}/ca.crt`]: pem,
    [`${serviceAccount}/namespace`]: 'sallyport\n',
  });
  const access = await loadAccess({}, deps);
  assert.equal(access.server, 'https://[fd00::1]:443');
  assert.equal(access.namespace, 'sallyport');
  const first = await access.credentials();
  assert.equal(first.token, 'first');

  state.files.set(`${serviceAccount}/token`, 'second');
  assert.equal((await access.credentials()).token, 'first', 'within five seconds the file is not read again');
  await clock.advance(5_000);
  const second = await access.credentials();
  assert.equal(second.token, 'second');
  assert.equal(second.tls, first.tls, 'a new token keeps the connections');

  state.files.delete(`${serviceAccount}/token`);
  await clock.advance(5_000);
  assert.equal((await access.credentials()).token, 'second', 'a file that vanishes during a swap keeps its content');

  state.files.set(`${serviceAccount}/token`, 'third');
  access.forget();
  assert.equal((await access.credentials()).token, 'third', 'a refused token is read again at once');
});

test('in a pod without a mounted token: one sentence', async () => {
  const { deps } = machine(inPod, { [`${serviceAccount}/ca.crt`]: pem });
  await assert.rejects(
    loadAccess({}, deps),
    refusal(/^Cannot read the service account token from .*token .*; check the path and its permissions\.$/),
  );
});

test('a named kubeconfig wins over the pod, and KUBECONFIG too', async () => {
  const text = kubeconfig('insecure-skip-tls-verify: true', 'token: t');
  const named = machine(inPod, { '/k': text });
  assert.equal((await loadAccess({ path: '/k' }, named.deps)).server, 'https://k:6443/prefix');
  const listed = machine({ ...inPod, KUBECONFIG: '/absent:/k' }, { '/k': text });
  const credentials = await (await loadAccess({}, listed.deps)).credentials();
  assert.deepEqual(credentials, {
    token: 't',
    tls: { ca: undefined, certificate: undefined, key: undefined, serverName: undefined, isInsecure: true },
  });
});

test('without any kubeconfig: one sentence that says what to set', async () => {
  const { deps } = machine({ HOME: '/conf' }, {});
  await assert.rejects(loadAccess({}, deps), refusal(/^\/conf\/\.kube\/config: no kubeconfig found; set KUBECONFIG/));
  await assert.rejects(loadAccess({ path: '/gone' }, deps), refusal(/^\/gone: cannot be read; check the path/));
});

test('embedded data, server name and files become TLS material', async () => {
  const cluster = `certificate-authority-data: ${base64(pem)}, tls-server-name: api.internal`;
  const { deps } = machine(
    {},
    {
      '/k': kubeconfig(cluster, 'client-certificate: me.pem, client-key: me.key, tokenFile: token'),
      '/me.pem': 'CERT',
      '/me.key': 'KEY',
      '/token': 'from file',
    },
  );
  assert.deepEqual(await (await loadAccess({ path: '/k' }, deps)).credentials(), {
    token: 'from file',
    tls: { ca: pem, certificate: 'CERT', key: 'KEY', serverName: 'api.internal', isInsecure: false },
  });
});

test('data that is not PEM is refused', async () => {
  const { deps } = machine({}, { '/k': kubeconfig('certificate-authority-data: bm9wZQ==', 'token: t') });
  await assert.rejects(
    loadAccess({ path: '/k' }, deps),
    refusal(/certificate-authority-data is not base64 of PEM text/),
  );
});

const plugin =
  'exec: { apiVersion: client.authentication.k8s.io/v1, command: login, args: [get], env: [{ name: REGION, value: eu }], installHint: "Install login first.", provideClusterInfo: true }';

function credential(status: object): ExecResult {
  const stdout = JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status });
  return { exitCode: 0, stdout, stderr: '' };
}

test('a plugin runs once until its credential expires or is refused', async () => {
  const { clock, deps, state, seenEnv } = machine(
    { HOME: '/conf' },
    { '/k': kubeconfig('tls-server-name: x', plugin) },
  );
  const access = await loadAccess({ path: '/k' }, deps);
  state.says = () =>
    credential({
      token: `token-${state.runs}`,
      expirationTimestamp: new Date(clock.now().getTime() + 60_000).toISOString(),
    });
  const [one, two] = await Promise.all([access.credentials(), access.credentials()]);
  assert.deepEqual([one.token, two.token, state.runs], ['token-1', 'token-1', 1]);
  await clock.advance(49_000);
  assert.equal((await access.credentials()).token, 'token-1');
  await clock.advance(2_000);
  assert.equal((await access.credentials()).token, 'token-2', 'renewed ten seconds before its end');
  access.forget();
  assert.equal((await access.credentials()).token, 'token-3');
  assert.equal(seenEnv[0]?.REGION, 'eu');
  assert.equal(seenEnv[0]?.HOME, '/conf');
  const info = JSON.parse(seenEnv[0]?.KUBERNETES_EXEC_INFO ?? '');
  assert.deepEqual([info.spec.interactive, info.spec.cluster.server], [false, 'https://k:6443/prefix/']);
});

test('a plugin may hand out a certificate', async () => {
  const { deps, state } = machine({}, { '/k': kubeconfig('tls-server-name: x', plugin) });
  state.says = () => credential({ clientCertificateData: 'CERT', clientKeyData: 'KEY' });
  const { tls } = await (await loadAccess({ path: '/k' }, deps)).credentials();
  assert.deepEqual([tls.certificate, tls.key], ['CERT', 'KEY']);
});

const failures: ReadonlyArray<readonly [string, () => ExecResult, RegExp]> = [
  [
    'fails',
    () => ({ exitCode: 3, stdout: '', stderr: 'warning\nnot logged in\n' }),
    /ended with code 3 \(not logged in\)/,
  ],
  [
    'prints no JSON',
    () => ({ exitCode: 0, stdout: 'hello', stderr: '' }),
    /printed something that is not an ExecCredential/,
  ],
  ['prints nothing of use', () => credential({}), /printed neither a token nor a certificate/],
  [
    'cannot be started',
    () => {
      throw new Error('spawn login ENOENT');
    },
    /did not run \(spawn login ENOENT\)/,
  ],
];
for (const [what, says, pattern] of failures) {
  test(`a plugin that ${what} is named with its install hint`, async () => {
    const { deps, state } = machine({}, { '/k': kubeconfig('tls-server-name: x', plugin) });
    state.says = says;
    const access = await loadAccess({ path: '/k' }, deps);
    await assert.rejects(access.credentials(), refusal(pattern));
    await assert.rejects(access.credentials(), refusal(/^\/k: exec plugin "login" .*Install login first\.$/));
  });
}

test('a plugin of an unknown version is refused before it runs', async () => {
  const { deps, state } = machine(
    {},
    { '/k': kubeconfig('tls-server-name: x', plugin.replace('k8s.io/v1,', 'k8s.io/v9,')) },
  );
  await assert.rejects(loadAccess({ path: '/k' }, deps), refusal(/speaks client\.authentication\.k8s\.io\/v9/));
  assert.equal(state.runs, 0);
});

test('programs really run: output, exit code, end of input, and a program that is not there', async () => {
  const { exec } = systemAccessDeps(new ManualClock());
  const options = { env: process.env, timeoutMs: 10_000 };
  const run = (script: string) => exec(process.execPath, ['-e', script], options);
  assert.deepEqual(await run('process.stdin.on("end", () => console.log("done")).resume()'), {
    exitCode: 0,
    stdout: 'done\n',
    stderr: '',
  });
  assert.equal((await run('process.exit(7)')).exitCode, 7);
  await assert.rejects(exec('/no/such/program', [], options), /ENOENT/);
});
