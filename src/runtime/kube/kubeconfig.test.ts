import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { chooseContext, mergeKubeconfigs } from './kubeconfig.ts';

const complete = `
apiVersion: v1
kind: Config
current-context: main
clusters:
- name: one
  cluster: { server: "https://one:6443", certificate-authority: ca.pem }
users:
- name: me
  user: { client-certificate: certs/me.pem, client-key: /abs/me.key }
contexts:
- name: main
  context: { cluster: one, user: me, namespace: shop }
preferences: {}
`;

function refusal(pattern: RegExp) {
  return (error: unknown) =>
    error instanceof EgressError && error.code === 'KUBECONFIG_INVALID' && pattern.test(error.message);
}

function choose(text: string, context?: string) {
  return chooseContext(mergeKubeconfigs([{ path: '/conf/config', text }]), context);
}

test('paths are relative to the file that names them', () => {
  const { cluster, user, namespace } = choose(complete);
  assert.equal(namespace, 'shop');
  assert.equal(cluster['certificate-authority'], '/conf/ca.pem');
  assert.equal(user['client-certificate'], '/conf/certs/me.pem');
  assert.equal(user['client-key'], '/abs/me.key');
});

test('the first file that defines a name wins, as in kubectl', () => {
  const second = `
current-context: other
clusters: [{ name: one, cluster: { server: "https://wrong" } }, { name: two, cluster: { server: "https://two" } }]
contexts: [{ name: other, context: { cluster: two } }]
`;
  const merged = mergeKubeconfigs([
    { path: '/a/config', text: complete },
    { path: '/b/config', text: second },
  ]);
  assert.equal(chooseContext(merged).cluster.server, 'https://one:6443');
  assert.equal(chooseContext(merged, 'other').cluster.server, 'https://two');
  assert.equal(chooseContext(merged, 'other').namespace, 'default');
});

test('a command is relative to its file only when it is a path', () => {
  const withCommand = (command: string) => `
current-context: c
clusters: [{ name: k, cluster: { server: "https://k" } }]
users: [{ name: u, user: { exec: { apiVersion: client.authentication.k8s.io/v1, command: ${command} } } }]
contexts: [{ name: c, context: { cluster: k, user: u } }]
`;
  assert.equal(choose(withCommand('./bin/login')).user.exec?.command, '/conf/bin/login');
  assert.equal(choose(withCommand('aws')).user.exec?.command, 'aws');
});

const refused: ReadonlyArray<readonly [string, string, RegExp]> = [
  ['not YAML', 'a: [', /\/conf\/config: is not valid YAML/],
  ['a wrong type', 'clusters: 3', /\/conf\/config: clusters: .*correct the file/],
  [
    'no current context',
    'contexts: [{ name: x, context: { cluster: k } }]',
    /no current-context is set; choose one of: x\./,
  ],
  ['an unknown context', 'current-context: nope', /there is no context "nope"; choose one of: none\./],
  [
    'a missing cluster',
    complete.replace('cluster: one', 'cluster: gone'),
    /names cluster "gone", which is not defined/,
  ],
  ['a missing user', complete.replace('user: me,', 'user: gone,'), /names user "gone", which is not defined/],
  [
    'a server that is no URL',
    complete.replace('https://one:6443', 'one:6443'),
    /must be an http:\/\/ or https:\/\/ URL/,
  ],
  [
    'a proxy',
    complete.replace('certificate-authority: ca.pem', 'proxy-url: "http://p"'),
    /sets proxy-url, which is not supported/,
  ],
  [
    'a password',
    complete.replace('client-key: /abs/me.key', 'username: me'),
    /uses a password, which Kubernetes has removed/,
  ],
  ['impersonation', complete.replace('client-key: /abs/me.key', 'as: root'), /asks for impersonation/],
  [
    'an old plugin',
    complete.replace('client-key: /abs/me.key', 'auth-provider: { name: gcp }'),
    /auth-provider "gcp".*use exec/,
  ],
];
for (const [what, text, pattern] of refused) {
  test(`${what} is refused with one sentence that names the file`, () => {
    assert.throws(() => choose(text), refusal(pattern));
    assert.throws(() => choose(text), refusal(/^\/conf\/config: [^\n]*\.$/));
  });
}
