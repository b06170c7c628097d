import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setsFor } from './seed-rules.ts';
import { addresses } from './site.ts';
import { workloadOf } from './workload.ts';

describe('a workload', () => {
  const workload = workloadOf(5_000);

  it('gives every pod an address of its own, and the measured pod to the last policy', () => {
    const pods = workload.flatMap((policy) => policy.pods);
    for (const family of ['ipv4', 'ipv6'] as const) {
      const ips = new Set(pods.map((pod) => pod[family]));
      assert.equal(ips.size, 50_000);
      assert.ok(!ips.has(addresses.bystander[family]));
    }
    assert.equal(workload.at(-1)?.pods[0], addresses.pod);
  });

  it('gives no two policies the same destination', () => {
    for (const family of ['ipv4', 'ipv6'] as const) {
      const ranges = workload.flatMap(({ destinations }) => destinations[family]);
      assert.equal(new Set(ranges).size, 10_000);
    }
  });
});

describe("the seed's sets", () => {
  it('are a pair for each policy and family', () => {
    const [first = ''] = setsFor(workloadOf(2)).split('create src-ipv6-policy-0');
    assert.equal(
      first,
      `create src-ipv4-policy-0 hash:net family inet
${Array.from({ length: 10 }, (_, number) => `add src-ipv4-policy-0 10.244.0.${number + 1}`).join('\n')}
create dst-ipv4-policy-0 hash:net family inet
add dst-ipv4-policy-0 172.16.0.0/24
add dst-ipv4-policy-0 100.64.0.0/24
`,
    );
  });
});
