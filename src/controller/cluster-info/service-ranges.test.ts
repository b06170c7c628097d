import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rangesOfApi, rangesOfFlags } from './service-ranges.ts';

const pod = (command: readonly string[], args: readonly string[] = []) => ({
  metadata: { name: 'control-plane' },
  spec: { containers: [{ command: ['sidecar'] }, { command, args }] },
});
const range = '10.96.0.0/12';

describe('rangesOfFlags', () => {
  const cases: readonly (readonly [string, ReturnType<typeof pod>, readonly string[]])[] = [
    ['one word', pod(['kube-apiserver', `--service-cluster-ip-range=${range}`]), [range]],
    ['two words', pod(['kube-apiserver', '--service-cluster-ip-range', range]), [range]],
    ['in args', pod(['kube-apiserver'], ['--v=2', `--service-cluster-ip-range=${range}`]), [range]],
    ['both families', pod([`--service-cluster-ip-range=${range},fd96::/108`]), [range, 'fd96::/108']],
    ['inside of a shell', pod(['sh', '-c', `exec x --service-cluster-ip-range="${range}" --v=2`]), [range]],
    ['without the flag', pod(['kube-apiserver', '--v=2']), []],
    ['with an empty flag', pod(['kube-apiserver', '--service-cluster-ip-range=']), []],
  ];
  for (const [name, given, wanted] of cases) {
    it(name, () => assert.deepEqual(rangesOfFlags([given]), wanted));
  }

  it('takes the first pod that has the flag, and none from pods without containers', () => {
    const [first, second] = [pod(['x']), pod([`--service-cluster-ip-range=${range}`])];
    assert.deepEqual(rangesOfFlags([{ metadata: { name: 'empty' } }, first, second]), [range]);
  });
});

describe('rangesOfApi', () => {
  it('joins all ServiceCIDRs, and says why there are none', () => {
    assert.deepEqual(rangesOfApi({ kind: 'present', values: [[range, 'fd96::/108'], ['10.200.0.0/16']] }).cidrs, [
      range,
      'fd96::/108',
      '10.200.0.0/16',
    ]);
    assert.deepEqual(rangesOfApi({ kind: 'absent', why: 'not served' }), {
      source: 'the ServiceCIDR API (not served)',
      cidrs: [],
    });
  });
});
