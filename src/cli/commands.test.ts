import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { resourceOf } from '../api/kinds.ts';
import { nodeGroupKey } from '../core/ownership/node-group.ts';
import { startTestApiServer, type TestApiServer } from '../runtime/testing/api-server.ts';
import { eventually } from '../runtime/testing/eventually.ts';
import { main } from './commands.ts';
import { partOfSallyport, resources } from './read.ts';
import { objects, orders, pod, programs, surroundings, withStatus } from './testing/shop.ts';

const ours = {
  gateways: resourceOf('EgressGateway'),
  policies: resourceOf('EgressPolicy'),
  clusterPolicies: resourceOf('EgressClusterPolicy'),
  tunnels: resourceOf('EgressTunnel'),
  clusterInfos: resourceOf('EgressClusterInfo'),
};

const folder = mkdtempSync(join(tmpdir(), 'egctl-test-'));
const kubeconfigFor = ({ url }: TestApiServer, name: string): string => {
  const path = join(folder, name);
  const config = {
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server: url } }],
    contexts: [{ name: 'test', context: { cluster: 'test', namespace: 'shop' } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
};

/** Runs a command line as the program does. */
const run = async (...argv: readonly string[]) => {
  const said = { code: 0, out: '', error: '' };
  said.code = await main({ name: 'egctl', version: '1.2.3' }, argv, {
    write: (text) => {
      said.out += text;
    },
    writeError: (text) => {
      said.error += text;
    },
    hasColours: false,
  });
  return said;
};

describe('egctl', () => {
  let server: TestApiServer;
  let bare: TestApiServer;
  let cluster: readonly string[];

  before(async () => {
    server = await startTestApiServer({ resources: [...Object.values(resources), ...Object.values(ours)] });
    bare = await startTestApiServer({ resources: Object.values(resources) });
    cluster = ['--kubeconfig', kubeconfigFor(server, 'cluster')];
    const [key = '', value = ''] = partOfSallyport.split('=');
    const ofChart = <T extends { metadata: object }>(object: T) => ({
      ...object,
      metadata: { ...object.metadata, labels: { [key]: value } },
    });
    const [controller, agents] = programs;
    assert.ok(controller !== undefined && agents !== undefined);
    server.put(resources.deployments, ofChart(controller));
    server.put(resources.daemonSets, ofChart(agents));
    server.put(resources.configMaps, ofChart(surroundings.config));
    for (const node of surroundings.nodes) server.put(resources.nodes, node);
    for (const namespace of surroundings.namespaces) server.put(resources.namespaces, namespace);
    for (const object of objects.gateways) server.put(ours.gateways, object);
    for (const object of objects.policies) server.put(ours.policies, object);
    for (const object of objects.tunnels) server.put(ours.tunnels, object);
    server.put(ours.clusterInfos, objects.clusterInfo);
    server.put(resources.pods, pod('orders-5d8c-a'));
  });
  after(async () => {
    await Promise.all([server.stop(), bare.stop()]);
    rmSync(folder, { recursive: true });
  });

  it('status ends with 0 when everything is fine', async () => {
    const { code, out, error } = await run('status', ...cluster);
    assert.equal(error, '');
    assert.match(out, /^Everything is fine\.\n/);
    assert.equal(code, 0);
  });

  it('status ends with 1 when something is not, and -o json has it', async () => {
    const [gateway] = objects.gateways;
    assert.ok(gateway !== undefined);
    const unseen = { ...gateway, metadata: { name: 'new' }, status: {} };
    const { code, out } = await during(
      () => server.put(ours.gateways, unseen),
      () => run('status', ...cluster, '-o', 'json'),
      () => server.delete(ours.gateways, 'new'),
    );
    assert.equal(code, 1);
    const { isFine, problems } = JSON.parse(out);
    assert.equal(isFine, false);
    assert.deepEqual(
      problems.map(({ about, name }: { about: string; name: string }) => `${about} ${name}`),
      ['gateway new'],
    );
  });

  it('why finds the pod in the namespace of the context', async () => {
    const { code, out } = await run('why', 'deploy/orders', '--to', '198.51.100.7', ...cluster);
    assert.match(out, /10\.244\.3\.7 {2}leaves with 10\.77\.0\.100 through node gateway-1 {2}policy shop\/orders/);
    assert.match(out, /unknown {2}worker-1 +No agent is ready on node worker-1\./);
    assert.equal(code, 0);
  });

  it('why gives the same as JSON', async () => {
    const { out } = await run('why', 'orders-5d8c-a', '-n', 'shop', '-o', 'json', ...cluster);
    assert.deepEqual(JSON.parse(out).ways[1], {
      source: 'fd44:0:0:3::7',
      to: 'everything outside the cluster',
      policy: 'shop/orders',
      gateway: 'office',
      outcome: { kind: 'gateway', node: 'gateway-1', slot: 17, eip: 'fd77::100' },
      isFine: true,
    });
  });

  const moving = (node: string, vip = '10.77.0.100', gateway = 'office') => [
    ...['vip', 'move', '--egressGatewayName', gateway, '--vip', vip, '--targetNode', node],
  ];
  const holding = (node: string) => {
    const tunnel = objects.tunnels.find(({ metadata }) => metadata.name === node);
    assert.ok(tunnel);
    return withStatus(tunnel, { report: { eips: [{ ip: '10.77.0.100', epoch: 1 }], problems: [] } });
  };

  it('vip move says on the gateway where the EIP is wanted, until the node holds it', async () => {
    const wishes: unknown[] = [];
    const moved = async () => {
      const text = () => {
        const { annotations } = server.read(ours.gateways, 'office')?.metadata ?? {};
        return annotations?.['egressgateway.spidernet.io/move-eips'];
      };
      await eventually('a wish', () => text() !== undefined);
      wishes.push(text());
      // What the controller and the agent of the node do about it.
      server.put(ours.policies, withStatus(orders, { node: 'gateway-2' }));
      server.put(ours.tunnels, holding('gateway-2'));
    };
    const [{ code, out, error }] = await Promise.all([run(...moving('gateway-2'), ...cluster), moved()]);
    assert.deepEqual(wishes, ['10.77.0.100=gateway-2']);
    assert.deepEqual(
      { code, out, error },
      { code: 0, out: '10.77.0.100, with 1 policy, is now on gateway-2.\n', error: '' },
    );
    assert.deepEqual(server.read(ours.gateways, 'office')?.metadata.annotations ?? {}, {});
    const again = await run(...moving('gateway-2'), ...cluster);
    assert.equal(again.out, '10.77.0.100, with 1 policy, is already on gateway-2.\n');
    server.put(ours.policies, orders);
  });

  it('vip move takes a node for what leaves with its own address, until the policies are on the other', async () => {
    const on = (node: string) => withStatus(orders, { eip: undefined, gateway: 'office', node });
    const wishes: unknown[] = [];
    const moved = async () => {
      const text = () =>
        server.read(ours.gateways, 'office')?.metadata.annotations?.['egressgateway.spidernet.io/move-eips'];
      await eventually('a wish', () => text() !== undefined);
      wishes.push(text());
      server.put(ours.policies, on('gateway-2'));
    };
    server.put(ours.policies, on('gateway-1'));
    const [{ code, out }] = await Promise.all([run(...moving('gateway-2', 'gateway-1'), ...cluster), moved()]);
    assert.deepEqual(wishes, [`${nodeGroupKey({ gateway: 'office', node: 'gateway-1' })}=gateway-2`]);
    assert.deepEqual([code, out], [0, 'gateway-1, with 1 policy, is now on gateway-2.\n']);
    const none = await run(...moving('gateway-2', 'gateway-1'), ...cluster);
    assert.match(none.error, /No policy leaves with the address of node gateway-1, so there is nothing to move\./);
    server.put(ours.policies, orders);
  });

  it('drain says on the node that it is to be empty, and waits until it is', async () => {
    const annotation = () =>
      server.read(resources.nodes, 'gateway-1')?.metadata.annotations?.['egressgateway.spidernet.io/drain'];
    const emptied = async () => {
      await eventually('a node that is to be empty', () => annotation() === 'true');
      server.put(ours.policies, withStatus(orders, { node: 'gateway-2' }));
    };
    const [{ code, out }] = await Promise.all([run('drain', 'gateway-1', ...cluster), emptied()]);
    assert.deepEqual([code, out], [0, 'Node gateway-1 carries no EIPs and gets no new ones.\n']);
    const undone = await run('undrain', 'gateway-1', ...cluster);
    assert.deepEqual([undone.code, undone.out], [0, 'Node gateway-1 may carry EIPs again.\n']);
    assert.equal(annotation(), undefined);
    server.put(ours.policies, orders);
  });

  const refusals: readonly [string, readonly string[], RegExp][] = [
    ['an unknown pod', ['why', 'shop/web'], /^egctl: There is no pod web in namespace shop; choose another/],
    ['a name that is none', ['why', 'We b'], /^egctl: "We b" is not a valid pod name: write POD, NAMESPACE\/POD/],
    [
      'a name as destination',
      ['why', 'orders', '--to', 'example.com'],
      /^egctl: --to is "example\.com": allowed is an IPv4 or IPv6/,
    ],
    ['an EIP that is none', moving('gateway-2', 'office'), /^egctl: --vip is "office": allowed is an EIP/],
    ['an EIP of nobody', moving('gateway-2', '10.77.0.109'), /^egctl: No policy leaves with 10\.77\.0\.109, so/],
    [
      'an EIP of another gateway',
      moving('gateway-2', '10.78.0.1'),
      /^egctl: The pool of gateway office does not contain 10\.78\.0\.1\./,
    ],
    [
      'an unknown gateway',
      moving('gateway-2', '10.77.0.100', 'home'),
      /There is no EgressGateway home; choose one of: office/,
    ],
    ['a node of no gateway', moving('worker-1'), /does not select node worker-1; it selects: gateway-1, gateway-2\./],
    ['to drain an unknown node', ['drain', 'nowhere'], /^egctl: There is no node nowhere\./],
    ['another format', ['status', '-o', 'xml'], /^egctl: .*Allowed choices are text, json\.\n$/],
    ['another context', ['status', '--context', 'other'], /there is no context "other"; choose one of: test\.\n$/],
  ];
  for (const [name, argv, says] of refusals) {
    it(`refuses ${name} with one sentence and 2`, async () => {
      const { code, out, error } = await run(...argv, ...cluster);
      assert.match(error, says);
      assert.deepEqual({ code, out, lines: error.trimEnd().split('\n').length }, { code: 2, out: '', lines: 1 });
    });
  }

  it('has the flags that its reference page lists, and no others', async () => {
    const help = await Promise.all(
      [['status'], ['why'], ['vip', 'move'], ['drain'], ['undrain']].map((command) => run(...command, '--help')),
    );
    const flagsIn = (text: string) => [...new Set(text.match(/(?<=^\W*(?:-\w\W*)?)--[a-z]\w+/gim))].sort();
    const page = readFileSync(join(import.meta.dirname, '../../docs/reference/egctl.md'), 'utf8');
    assert.deepEqual(
      flagsIn(page),
      flagsIn(help.map(({ out }) => out).join('\n')).filter((flag) => flag !== '--help'),
    );
  });

  it('says when Sallyport is not installed', async () => {
    const { code, error } = await run('status', '--kubeconfig', kubeconfigFor(bare, 'bare'));
    assert.equal(code, 2);
    assert.match(error, /^egctl: Sallyport is not installed in this cluster; install its chart/);
  });

  it('says when the cluster cannot be reached', async () => {
    const gone = await startTestApiServer({ resources: [] });
    const path = kubeconfigFor(gone, 'gone');
    await gone.stop();
    const { code, error } = await run('status', '--kubeconfig', path);
    assert.equal(code, 2);
    assert.match(error, /^egctl: list .*ECONNREFUSED/);
  });
});

/** Runs something while the world is different. */
async function during<T>(change: () => unknown, act: () => Promise<T>, undo: () => unknown): Promise<T> {
  change();
  try {
    return await act();
  } finally {
    undo();
  }
}
