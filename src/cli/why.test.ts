import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KernelView } from '../core/node/kernel-view.ts';
import { projectPod } from '../core/project/index.ts';
import { ip } from '../core/testing/address.ts';
import type { KernelAnswer, Question } from './agents.ts';
import { decide } from './decide.ts';
import { checkKernels } from './kernel-check.ts';
import type { OwnObjects, ServedPod } from './read.ts';
import { checkReports, checkStatuses } from './record-check.ts';
import { failing, objects, orders, pod, surroundings, withStatus } from './testing/shop.ts';
import { plain } from './text.ts';
import { viewOf } from './view.ts';
import { type WhyReport, whyOf } from './why.ts';
import { whyText } from './why-text.ts';

type Kernels = (question: Question) => KernelAnswer;

/** Kernels that hold what was decided for policy shop/orders: slot 17 goes to gateway-1 and leaves with its EIPs. */
const inStep: Kernels = ({ node, ip: source, slot }) => ({
  ok: true,
  view: {
    node,
    hasTable: true,
    ...(source === undefined
      ? {}
      : { source: { ip: source, class: '0x25000001', destinations: [], otherwise: { kind: 'slot', slot: 17 } } }),
    ...(slot === undefined
      ? {}
      : {
          slot: {
            slot,
            gateway: 'gateway-1',
            eip: node === 'gateway-1' ? { ipv4: '10.77.0.100', ipv6: 'fd77::100' } : {},
          },
        }),
  },
});
const holding =
  (change: Partial<KernelView>): Kernels =>
  ({ node }) => ({ ok: true, view: { node, hasTable: true, ...change } });

const why = async ({
  to,
  kernels = inStep,
  cluster = objects,
  of = pod('orders-5d8c-a'),
}: {
  to?: string;
  kernels?: Kernels;
  cluster?: OwnObjects;
  of?: ServedPod;
} = {}): Promise<WhyReport> => {
  const { view, notes } = viewOf(cluster, surroundings);
  const decided = decide(view, projectPod(of), to === undefined ? undefined : ip(to));
  const held = await checkKernels(decided, async (question) => kernels(question));
  const checks = [...checkStatuses(decided, cluster), ...held, ...checkReports(decided, cluster)];
  return whyOf(decided, checks, notes);
};
const text = async (...question: Parameters<typeof why>): Promise<string> =>
  `${whyText(await why(...question), plain).join('\n')}\n`;

describe('why', () => {
  it('tells the way out of both families and that the kernels agree', async () => {
    assert.equal(
      await text(),
      `Pod shop/orders-5d8c-a on node worker-1
  10.244.3.7 to everything outside the cluster     leaves with 10.77.0.100 through node gateway-1  policy shop/orders, gateway office, slot 17
  fd44:0:0:3::7 to everything outside the cluster  leaves with fd77::100 through node gateway-1    policy shop/orders, gateway office, slot 17

Why
  Policy shop/orders selects pod shop/orders-5d8c-a.
  Policy shop/orders uses gateway office.
  Gateway office selects 2 nodes.
  2 of 2 nodes of gateway office are ready.
  Policy shop/orders leaves with 10.77.0.100 and fd77::100 through node gateway-1 (slot 17).
  Traffic of shop/orders goes to node gateway-1 with slot 17.

Checked
  ok  status of shop/orders  10.77.0.100 and fd77::100 on node gateway-1, slot 17.
  ok  worker-1               10.244.3.7 (class 0x25000001) to everything outside the cluster: slot 17 to node gateway-1.
  ok  gateway-1              slot 17 leaves with 10.77.0.100.
  ok  worker-1               fd44:0:0:3::7 (class 0x25000001) to everything outside the cluster: slot 17 to node gateway-1.
  ok  gateway-1              slot 17 leaves with fd77::100.
`,
    );
    assert.equal((await why()).isFine, true);
  });

  it('leaves alone what is inside the cluster, whatever the kernel says about the outside', async () => {
    assert.equal(
      await text({ to: '10.244.9.9' }),
      `Pod shop/orders-5d8c-a on node worker-1 to 10.244.9.9
  10.244.3.7  is left alone

Why
  Policy shop/orders selects pod shop/orders-5d8c-a.
  shop/orders selects all destinations outside the cluster, and 10.244.9.9 is inside.
  No policy of pod shop/orders-5d8c-a applies to 10.244.9.9; the traffic is left alone.

Checked
  ok  worker-1  10.244.3.7 (class 0x25000001) to 10.244.9.9: left alone.
`,
    );
  });

  it('shows a kernel that differs as such', async () => {
    const report = await why({ to: '198.51.100.7', kernels: holding({}) });
    assert.deepEqual(
      report.checks.map(({ result, where, sentence }) => `${result} ${where}: ${sentence}`),
      [
        'same status of shop/orders: 10.77.0.100 and fd77::100 on node gateway-1, slot 17.',
        'different worker-1: 10.244.3.7 (no class) to 198.51.100.7: left alone; expected: slot 17 to node gateway-1.',
        'different gateway-1: slot 17 leaves with no IPv4 address; expected: 10.77.0.100.',
      ],
    );
    assert.equal(report.isFine, false);
  });

  it('says which agent could not be asked, and does not call that a difference', async () => {
    const silent: Kernels = ({ node }) => ({ ok: false, sentence: `No agent is ready on node ${node}.` });
    const report = await why({ to: '2001:db8::7', kernels: silent });
    assert.deepEqual(
      report.checks.slice(1).map(({ result, sentence }) => `${result} ${sentence}`),
      ['unknown No agent is ready on node worker-1.', 'unknown No agent is ready on node gateway-1.'],
    );
    assert.equal(report.isFine, true);
  });

  it('tells a decision that nobody has written down yet from one that is', async () => {
    const fresh = { ...objects, policies: [{ ...orders, status: {} }] };
    const [check] = (await why({ cluster: fresh })).checks;
    assert.equal(check?.result, 'different');
    assert.match(
      check?.sentence ?? '',
      /^no slot; expected: 10\.77\.0\.100 and fd77::100 on node .*Check the controller\.$/,
    );
  });

  it('repeats what Programmed says when it does not hold', async () => {
    const conditions = [
      failing('Programmed', 'WaitingForNodes', 'worker-1 has not reported generation 1 of shop/orders.'),
    ];
    const waiting = { ...objects, policies: [withStatus(orders, { conditions })] };
    assert.deepEqual((await why({ cluster: waiting })).checks[1], {
      where: 'status of shop/orders',
      result: 'different',
      sentence: 'WaitingForNodes: worker-1 has not reported generation 1 of shop/orders.',
    });
  });

  it('repeats what the agents of the two nodes report about the policy or the node', async () => {
    const told = (policy?: string) => ({ reason: 'EipInUse', message: `${policy} cannot.`, ...(policy && { policy }) });
    const [gateway = orders, other = orders, worker = orders] = objects.tunnels;
    const tunnels = [
      withStatus(gateway, { report: { problems: [told('shop/orders'), told('shop/another')] } }),
      withStatus(other, { report: { problems: [told()] } }),
      withStatus(worker, { report: { problems: [{ reason: 'SysctlRefused', message: 'No.' }] } }),
    ];
    const report = await why({ to: '198.51.100.7', cluster: { ...objects, tunnels } });
    assert.deepEqual(
      report.checks.slice(-2).map(({ where, result, sentence }) => `${result} ${where}: ${sentence}`),
      [
        'different report of gateway-1: EipInUse: shop/orders cannot.',
        'different report of worker-1: SysctlRefused: No.',
      ],
    );
  });

  it('tells of a policy that cannot be served', async () => {
    const lost = { ...objects, gateways: [] };
    const kernels = holding({
      source: { ip: '10.244.3.7', class: '0x25000001', destinations: [], otherwise: { kind: 'drop' } },
    });
    const report = await why({ to: '198.51.100.7', cluster: lost, kernels });
    assert.deepEqual(report.ways[0]?.outcome, { kind: 'drop', because: 'unbound' });
    assert.equal(report.isFine, false);
    assert.match(whyText(report, plain).join('\n'), /10\.244\.3\.7 {2}is dropped {2}policy shop\/orders/);
  });

  it('tells of a gateway node that is lost, whose traffic must not leave otherwise', async () => {
    const tunnels = objects.tunnels.map((tunnel) => withStatus(tunnel, { phase: 'HeartbeatTimeout' }));
    const report = await why({ to: '198.51.100.7', cluster: { ...objects, tunnels } });
    assert.match(whyText(report, plain)[1] ?? '', /goes to node gateway-1, which is not ready, and is lost there/);
    assert.equal(report.isFine, false);
  });

  it('tells all that policies distinguish, each policy without what an earlier one has taken', async () => {
    const bank = {
      ...withStatus(orders, { slot: 18 }),
      metadata: { ...orders.metadata, name: 'bank', uid: 'uid-bank' },
      spec: {
        ...(orders.spec as object),
        destSubnet: ['203.0.113.0/24', '2001:db8:113::/64'],
        exceptSubnet: ['2001:db8:113::/64'],
      },
    };
    const rest = {
      ...orders,
      spec: { ...(orders.spec as object), destSubnet: ['203.0.113.7', '198.51.100.0/24'], priority: 9 },
    };
    const report = await why({ cluster: { ...objects, policies: [rest, bank] }, kernels: holding({}) });
    assert.deepEqual(
      report.ways.map(({ source, to, policy, outcome }) => `${source} to ${to}: ${policy} ${outcome.kind}`),
      [
        '10.244.3.7 to 203.0.113.0/24 2001:db8:113::/64: shop/bank gateway',
        '10.244.3.7 to 198.51.100.0/24 203.0.113.7: shop/orders gateway',
        '10.244.3.7 to everything else outside the cluster: undefined leftAlone',
        'fd44:0:0:3::7 to everything else outside the cluster: undefined leftAlone',
      ],
    );
    assert.ok(report.decisions.some(({ sentence }) => sentence === 'shop/bank comes first: priority 0 is before 9.'));
  });

  it('takes no destination for an example that no policy gets', async () => {
    const spec = { ...(orders.spec as object), destSubnet: ['0.0.0.0/0', '::/0', '10.77.0.13'] };
    const report = await why({ cluster: { ...objects, policies: [{ ...orders, spec }] } });
    assert.deepEqual(
      report.ways.map(({ outcome }) => outcome.kind),
      ['gateway', 'gateway'],
    );
  });

  it('shows the first policies of a pod that is under many, and says how to ask about the rest', async () => {
    const many = Array.from({ length: 9 }, (_, index) => ({
      ...withStatus(orders, { slot: 20 + index }),
      metadata: { ...orders.metadata, name: `p${index}`, uid: `uid-${index}` },
      spec: { ...(orders.spec as object), destSubnet: [`198.51.100.${index}`] },
    }));
    const report = await why({ cluster: { ...objects, policies: many } });
    assert.equal(report.ways.length, 4);
    assert.deepEqual(report.notes, ['5 more policies select it; ask about one destination with --to ADDRESS.']);
  });

  const onNode = { nodeName: 'worker-1' };
  const pods: readonly [string, ServedPod, string, RegExp][] = [
    ['a family that the pod does not have', onlyIpv4(pod('a')), '2001:db8::7', /has no IPv6 address/],
    [
      'a pod of the host network',
      { ...pod('a'), spec: { ...onNode, hostNetwork: true } },
      '198.51.100.7',
      /uses the host network/,
    ],
    ['the node that the pod runs on', pod('a'), '10.77.0.13', /is the node that the pod runs on/],
  ];
  for (const [name, of, to, says] of pods) {
    it(`says so of ${name}`, async () => {
      const report = await why({ of, to });
      const [, first, , , second = ''] = whyText(report, plain);
      assert.equal(first, '  No policy applies to this traffic.');
      assert.match(second, says);
      assert.deepEqual(report.checks, []);
      assert.equal(report.isFine, true);
    });
  }
});

function onlyIpv4(one: ServedPod): ServedPod {
  return { ...one, status: { phase: 'Running', podIP: '10.244.3.7', podIPs: [{ ip: '10.244.3.7' }] } };
}
