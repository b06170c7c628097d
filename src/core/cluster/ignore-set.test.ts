import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EgressClusterInfoSpec } from '../../api/egress-cluster-info.ts';
import { formatSet } from '../ip/index.ts';
import { projectClusterInfo, projectNode } from '../project/index.ts';
import { type ClusterFacts, ignoreSetOf } from './ignore-set.ts';

const node = (name: string, address: string, podCIDRs: readonly string[]) =>
  projectNode({ metadata: { name }, spec: { podCIDRs }, status: { addresses: [{ type: 'InternalIP', address }] } });

const facts: ClusterFacts = {
  nodes: [
    node('b', '10.0.0.2', ['10.244.1.0/24', 'fd44:1::/64']),
    node('a', '10.0.0.1', ['10.244.0.0/24', 'fd44::/64']),
  ],
  calicoPools: undefined,
  apiServers: ['10.9.0.2', '10.9.0.1', 'strange'],
  serviceCidrs: [
    { source: 'ServiceCIDR', cidrs: ['10.96.0.0/12', 'fd96::/108'] },
    { source: 'kube-apiserver', cidrs: ['10.97.0.0/16'] },
  ],
  custom: ['192.168.0.0/16'],
};
const spec = (over: object = {}): EgressClusterInfoSpec => EgressClusterInfoSpec.parse(over);

describe('ignoreSetOf', () => {
  it('lists every source and merges them', () => {
    const { status, detected } = ignoreSetOf(spec({ extraCidr: ['172.16.0.1', '192.168.1.0/24'] }), facts);
    assert.deepEqual(status, {
      podCidrMode: 'k8s',
      clusterIP: { ipv4: ['10.96.0.0/12'], ipv6: ['fd96::/108'] },
      nodeIP: { a: { ipv4: ['10.0.0.1'], ipv6: [] }, b: { ipv4: ['10.0.0.2'], ipv6: [] } },
      apiServer: { ipv4: ['10.9.0.1', '10.9.0.2'], ipv6: [] },
      podCIDR: {
        a: { ipv4: ['10.244.0.0/24'], ipv6: ['fd44::/64'] },
        b: { ipv4: ['10.244.1.0/24'], ipv6: ['fd44:1::/64'] },
      },
      extraCidr: ['172.16.0.1', '192.168.1.0/24'],
      egressIgnoreCIDR: {
        clusterIP: { ipv4: ['10.96.0.0/12'], ipv6: ['fd96::/108'] },
        nodeIP: { ipv4: ['10.0.0.1', '10.0.0.2'], ipv6: [] },
        apiServer: { ipv4: ['10.9.0.1', '10.9.0.2'], ipv6: [] },
        podCIDR: { ipv4: ['10.244.0.0/23'], ipv6: ['fd44::/64', 'fd44:1::/64'] },
        custom: { ipv4: ['172.16.0.1', '192.168.0.0/16'], ipv6: [] },
      },
    });
    assert.equal(detected.reason, 'RangesDetected');
  });

  it('is read back by the projection', () => {
    const { status } = ignoreSetOf(spec(), facts);
    const ranges = projectClusterInfo({ metadata: { name: 'default' }, status });
    assert.deepEqual(formatSet(ranges.pods), ['10.244.0.0/23', 'fd44::/64', 'fd44:1::/64']);
    assert.deepEqual(formatSet(ranges.nodes), ['10.0.0.1-10.0.0.2']);
    assert.deepEqual(formatSet(ranges.apiServers), ['10.9.0.1-10.9.0.2']);
  });

  const calico = { ...facts, calicoPools: [{ name: 'default', cidr: '10.10.0.0/16' }] };
  it('takes Calico before the nodes in mode auto', () => {
    const { status } = ignoreSetOf(spec(), calico);
    assert.deepEqual(
      [status.podCidrMode, status.podCIDR],
      ['calico', { default: { ipv4: ['10.10.0.0/16'], ipv6: [] } }],
    );
  });
  it('takes the nodes in mode k8s', () =>
    assert.equal(ignoreSetOf(spec({ autoDetect: { podCidrMode: 'k8s' } }), calico).status.podCidrMode, 'k8s'));
  it('takes the nodes in mode auto while Calico has no pools', () => {
    assert.equal(ignoreSetOf(spec(), { ...facts, calicoPools: [] }).status.podCidrMode, 'k8s');
  });

  it('takes the next source of Service ranges when the first has none', () => {
    const [, flags] = facts.serviceCidrs;
    assert.ok(flags);
    const found = ignoreSetOf(spec(), { ...facts, serviceCidrs: [{ source: 'ServiceCIDR', cidrs: [] }, flags] });
    assert.deepEqual(found.status.clusterIP?.ipv4, ['10.97.0.0/16']);
  });

  it('is empty where detection is turned off, and that is no fault; API servers always belong to the cluster', () => {
    const off = ignoreSetOf(spec({ autoDetect: { podCidrMode: '', clusterIP: false, nodeIP: false } }), {
      ...facts,
      custom: [],
    });
    assert.deepEqual(off.status.egressIgnoreCIDR, {
      clusterIP: { ipv4: [], ipv6: [] },
      nodeIP: { ipv4: [], ipv6: [] },
      apiServer: { ipv4: ['10.9.0.1', '10.9.0.2'], ipv6: [] },
      podCIDR: { ipv4: [], ipv6: [] },
      custom: { ipv4: [], ipv6: [] },
    });
    assert.deepEqual(off.missing, []);
  });

  it('says what was not found, and where it looked', () => {
    const bare = { ...facts, nodes: [node('a', '10.0.0.1', [])], serviceCidrs: [{ source: 'ServiceCIDR', cidrs: [] }] };
    const { missing, detected } = ignoreSetOf(spec(), bare);
    assert.deepEqual(
      missing.map(({ reason }) => reason),
      ['ServiceCidrNotFound', 'PodCidrNotFound'],
    );
    assert.match(detected.sentence, /No Service range was found \(looked at: ServiceCIDR\)\. List the Service ranges/);
    const forced = ignoreSetOf(spec({ autoDetect: { podCidrMode: 'calico' } }), facts);
    assert.equal(forced.detected.reason, 'CalicoNotFound');
  });

  it('does not lose the others to one text that cannot be read', () => {
    const { status } = ignoreSetOf(spec(), { ...facts, custom: ['nonsense', '192.168.0.0/16'] });
    assert.deepEqual(status.egressIgnoreCIDR?.custom?.ipv4, ['192.168.0.0/16']);
  });
});
