import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { run } from '../../lab/host/command.ts';
import { instanceOf } from '../../lab/host/instance.ts';
import { silent } from '../../lab/host/progress.ts';
import { until } from '../../lab/host/wait.ts';
import { install } from '../../lab/install.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { egress, manifests } from '../../lab/scenarios/egress.ts';
import { silently } from '../../lab/scenarios/scenario.ts';
import {
  apiVersion,
  clients,
  kubeconfigSchema,
  podsSchema,
  recordSchema,
  statusSchema,
  whySchema,
} from './egctl-world.ts';
import { tellOfLab } from './witness.ts';

const bin = join(import.meta.dirname, '..', '..', 'bin');
const reader = 'docs/how-to/egctl-reader.yaml';
const controllerPods = 'app.kubernetes.io/component=controller';

/** The story of the demo, and egctl in the cluster where it is told. */
describe('egctl', () => {
  let lab: Lab;
  const folder = mkdtempSync(join(tmpdir(), 'egctl-e2e-'));
  tellOfLab('egctl');
  before(async () => {
    lab = await startLab({ name: 'egctl', workers: 1 });
    const set = ['config.feature.enableIPv6=true'];
    await install({ instance: instanceOf(lab.name), programs: lab.programs, set, progress: silent });
  });
  after(async () => {
    rmSync(folder, { recursive: true });
    await lab?.down();
  });

  const egctl = (args: readonly string[], kubeconfig = lab.kubeconfig) =>
    run([join(bin, 'egctl'), ...args], { env: { KUBECONFIG: kubeconfig, NO_COLOR: '1' } });
  const why = async (kubeconfig?: string) => {
    const args = ['why', 'deploy/orders', '-n', 'shop', '--to', lab.status.outside.ipv4, '-o', 'json'];
    const { code, stdout, stderr } = await egctl(args, kubeconfig);
    assert.notEqual(code, 2, stderr);
    return { code, ...whySchema.parse(JSON.parse(stdout)) };
  };

  for (const step of egress.steps) test(`demo: ${step.title}`, async () => void (await step.act(lab, silently)));

  describe('in a cluster with policies', () => {
    before(async () => {
      await lab.kubectl(['apply', '-f', manifests]);
      const policies = ['egresspolicy', '--all', '--timeout=180s'];
      await lab.kubectl(['-n', 'shop', 'wait', '--for=condition=Programmed', ...policies]);
    });

    test('status is fine', async () => {
      let said = '';
      const isFine = async (): Promise<boolean> => {
        const { code, stdout } = await egctl(['status']);
        said = stdout;
        return code === 0 && /office +2 of 10 +2 of 10 +gateway-\d +Ready/.test(stdout);
      };
      // What a gateway shows may be two seconds behind its policies.
      await until({ what: 'a status that is fine', limitMs: 15_000, explain: () => said }, isFine);
    });

    test('why has the same from status and kernels', async () => {
      const { code, checks } = await why();
      assert.deepEqual(checks.map(({ where, result }) => `${where} ${result}`).sort(), [
        `${checks.at(-1)?.where} same`,
        'status of shop/orders same',
        'worker-1 same',
      ]);
      assert.equal(code, 0);
    });

    test('what why says is what the server sees, on every node', async () => {
      await lab.apply(...clients);
      await lab.kubectl(['-n', 'many', 'rollout', 'status', 'daemonset/client', '--timeout=180s']);
      const programmed = ['wait', '--for=condition=Programmed', '--timeout=180s'];
      await lab.kubectl(['-n', 'many', ...programmed, 'egresspolicy', '--all']);
      await lab.kubectl([...programmed, 'egressclusterpolicy', '--all']);
      const list = podsSchema.parse(JSON.parse(await lab.kubectl(['-n', 'many', 'get', 'pods', '-o', 'json'])));
      const kinds = new Set<string>();
      const { outside, elsewhere, nodes } = lab.status;
      for (const { metadata, spec } of list.items) {
        for (const to of [outside.ipv4, outside.ipv6, elsewhere.ipv4, elsewhere.ipv6]) {
          const { stdout } = await egctl(['why', `many/${metadata.name}`, '--to', to, '-o', 'json']);
          const { ways, checks } = whySchema.parse(JSON.parse(stdout));
          const what = `${metadata.name} on ${spec.nodeName} to ${to}`;
          const outcome = ways[0]?.outcome;
          assert.ok(outcome !== undefined, what);
          const node = nodes.find(({ name }) => name === spec.nodeName);
          const ordinary = to.includes(':') ? node?.ipv6 : node?.ipv4;
          const promised = { gateway: outcome.eip, drop: 'nothing', nodeIp: ordinary, leftAlone: ordinary };
          assert.equal(await source(metadata.name, to), promised[outcome.kind], what);
          assert.deepEqual(
            checks.filter(({ result }) => result !== 'same'),
            [],
            what,
          );
          kinds.add(outcome.kind);
        }
      }
      assert.deepEqual([...kinds].sort(), ['drop', 'gateway', 'leftAlone']);
    });

    test('vip move: the EIP, its policies and their packets go through the other node', async () => {
      const record = async () => {
        const text = await lab.kubectl(['-n', 'shop', 'get', 'egresspolicy', 'orders', '-o', 'json']);
        const { eip, node } = recordSchema.parse(JSON.parse(text)).status;
        return { vip: eip.ipv4, node };
      };
      const { vip, node: from } = await record();
      const to = from === 'gateway-1' ? 'gateway-2' : 'gateway-1';
      const move = ['vip', 'move', '--egressGatewayName', 'office', '--vip', vip, '--targetNode', to];
      const { code, stdout, stderr } = await egctl(move);
      assert.deepEqual([code, stdout, stderr], [0, `${vip}, with 1 policy, is now on ${to}.\n`, '']);
      assert.deepEqual(await record(), { vip, node: to });
      await until({ what: 'packets through the other node', limitMs: 10_000 }, async () => {
        const { code: verdict, ways } = await why();
        return verdict === 0 && ways.some(({ outcome }) => outcome.node === to && outcome.eip === vip);
      });
    });

    test('drain: the node is emptied, its policies leave through the other one', async () => {
      const text = await lab.kubectl(['-n', 'shop', 'get', 'egresspolicy', 'orders', '-o', 'json']);
      const { node } = recordSchema.parse(JSON.parse(text)).status;
      const drained = await egctl(['drain', node]);
      assert.deepEqual([drained.code, drained.stdout], [0, `Node ${node} carries no EIPs and gets no new ones.\n`]);
      await until({ what: 'packets through the other node', limitMs: 10_000 }, async () => {
        const { code, ways } = await why();
        return code === 0 && ways.every(({ outcome }) => outcome.node !== node);
      });
      assert.equal((await egctl(['undrain', node])).stdout, `Node ${node} may carry EIPs again.\n`);
    });

    test('is a plugin of kubectl', async () => {
      const env = { KUBECONFIG: lab.kubeconfig, PATH: `${bin}:${dirname(lab.programs.kubectl)}:${process.env.PATH}` };
      const { code, stdout, stderr } = await run(['kubectl', 'egress', 'status'], { env });
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^Everything is fine\.\n/);
    });

    test('the rights of the documentation are enough, and what is missing is said', async () => {
      const account = { kind: 'ServiceAccount', name: 'eve', namespace: 'default' };
      const bind = (kind: 'ClusterRole' | 'Role', metadata: object) => ({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: `${kind}Binding`,
        metadata,
        subjects: [account],
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: 'egctl' },
      });
      await lab.kubectl(['apply', '-f', reader]);
      await lab.apply(
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account.name, namespace: account.namespace } },
        bind('ClusterRole', { name: 'eve' }),
        bind('Role', { name: 'eve', namespace: 'sallyport' }),
      );
      const eve = await kubeconfigOf(account.name);
      await until(
        { what: 'the rights of eve', limitMs: 10_000 },
        async () => (await egctl(['status'], eve)).code === 0,
      );
      const all = await why(eve);
      assert.deepEqual([all.code, all.notes], [0, []]);
      assert.ok(all.checks.every(({ result }) => result === 'same'));

      await lab.kubectl(['-n', 'sallyport', 'delete', 'rolebinding', 'eve']);
      const fewer = await until({ what: 'the rights of eve to be gone', limitMs: 10_000 }, async () => {
        const report = await why(eve);
        return report.notes.length > 0 ? report : undefined;
      });
      assert.deepEqual(fewer.notes, [
        'Cannot read the ConfigMap of the chart; this answer assumes the default configuration.',
      ]);
      for (const check of fewer.checks.filter(({ where }) => !where.startsWith('status of'))) {
        assert.equal(check.result, 'unknown');
        assert.match(check.sentence, /pods\/proxy.*403 Forbidden/);
      }
    });

    test('status names what is not fine', async () => {
      const nodeSelector = { selector: { matchLabels: { nobody: 'has-it' } } };
      await lab.apply({
        apiVersion,
        kind: 'EgressGateway',
        metadata: { name: 'nowhere' },
        spec: { ippools: { ipv4: ['10.77.0.150'] }, nodeSelector },
      });
      const report = await until({ what: 'the gateway to be judged', limitMs: 10_000 }, async () => {
        const { code, stdout } = await egctl(['status', '-o', 'json']);
        const { problems } = statusSchema.parse(JSON.parse(stdout));
        return problems.some(({ reason }) => reason !== undefined) ? { code, problems } : undefined;
      });
      assert.deepEqual(report.problems, [{ about: 'gateway', name: 'nowhere', reason: 'NoMatchingNode' }]);
      assert.equal(report.code, 1);
      await lab.kubectl(['delete', 'egressgateway', 'nowhere']);
    });

    test('why shows a status that the controller would not have written', async () => {
      const scale = (replicas: number) =>
        lab.kubectl(['-n', 'sallyport', 'scale', 'deploy/sallyport-controller', `--replicas=${replicas}`]);
      await scale(0);
      await lab.kubectl(['-n', 'sallyport', 'wait', '--for=delete', 'pod', '-l', controllerPods, '--timeout=180s']);
      try {
        const foreign = JSON.stringify({ status: { eip: { ipv4: '10.77.0.199' } } });
        const patch = ['patch', 'egresspolicy', 'orders', '--subresource=status', '--type=merge', '-p', foreign];
        await lab.kubectl(['-n', 'shop', ...patch]);
        const { code, checks } = await why();
        assert.equal(code, 1);
        assert.deepEqual([checks[0]?.where, checks[0]?.result], ['status of shop/orders', 'different']);
        assert.match(checks[0]?.sentence ?? '', /^10\.77\.0\.199 and .*expected: 10\.77\.0\.100 and .*controller\.$/);
        const { code: statusCode, stdout } = await egctl(['status']);
        assert.equal(statusCode, 1);
        assert.match(stdout, /! sallyport\/sallyport-controller\n +0 of 0 pods are ready\./);
      } finally {
        await scale(2);
      }
      await until({ what: 'the status to be put right', limitMs: 60_000 }, async () => (await why()).code === 0);
    });
  });

  /** The address that the server sees of a client, or `nothing` when it gets no answer. */
  async function source(pod: string, to: string): Promise<string> {
    const url = `http://${to.includes(':') ? `[${to}]` : to}:${lab.status.outside.httpPort}/`;
    const curl = ['curl', '-sS', '--max-time', '5', url];
    const { code, stdout } = await lab.tryKubectl(['-n', 'many', 'exec', pod, '--', ...curl]);
    return code === 0 ? z.object({ address: z.string() }).parse(JSON.parse(stdout)).address : 'nothing';
  }

  /** A kubeconfig with a token of a ServiceAccount of the namespace default. */
  async function kubeconfigOf(account: string): Promise<string> {
    const token = (await lab.kubectl(['create', 'token', account])).trim();
    // The kubeconfig of the lab is ours: one cluster, one context.
    const admin = kubeconfigSchema.parse(parse(await lab.kubectl(['config', 'view', '--raw'])));
    const path = join(folder, account);
    writeFileSync(
      path,
      JSON.stringify({ ...admin, users: admin.users.map(({ name }) => ({ name, user: { token } })) }),
    );
    return path;
  }
});
