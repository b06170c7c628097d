/**
 * The agents in the chart: the pod as text, what it is allowed that others are not, and that the API server lets an agent
 * write about its own node only. What agents do in a cluster is in chart-install.test.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type BareControlPlane, startBareControlPlane } from '../../lab/bare-control-plane.ts';
import { run } from '../../lab/host/command.ts';
import { until } from '../../lab/host/wait.ts';
import { release } from '../../lab/install.ts';
import { programs } from '../../lab/setup/go-build.ts';
import { type Helm, openHelm, type Rendered } from './helm.ts';

let controlPlane: BareControlPlane;
let helm: Helm;
before(async () => {
  controlPlane = await startBareControlPlane({ log: (line) => console.log(line) });
  helm = openHelm(await programs(), controlPlane.kubeconfig);
  await kubectl(['create', 'namespace', release.namespace]);
});
after(async () => {
  helm?.close();
  await controlPlane?.stop();
});

const kubectl = (args: readonly string[], input = '') =>
  run([controlPlane.kubectl, '--kubeconfig', controlPlane.kubeconfig, ...args], { input });

const Container = z.looseObject({
  name: z.string(),
  args: z.array(z.string()).default([]),
  securityContext: z.unknown(),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
});
const DaemonSet = z.looseObject({
  metadata: z.looseObject({ annotations: z.record(z.string(), z.string()) }),
  spec: z.looseObject({
    updateStrategy: z.unknown(),
    template: z.looseObject({
      spec: z.looseObject({
        containers: z.array(Container),
        initContainers: z.array(Container).default([]),
        volumes: z.array(z.looseObject({ name: z.string(), hostPath: z.unknown().optional() })),
      }),
    }),
  }),
});
type DaemonSet = z.infer<typeof DaemonSet>;

/** The DaemonSets that are rendered: the agents, and those that clean when the release goes. */
const daemonSetsIn = (objects: readonly Rendered[]): { agents: DaemonSet; cleaners: DaemonSet } => {
  const all = objects.filter(({ kind }) => kind === 'DaemonSet').map((object) => DaemonSet.parse(object));
  const agents = all.find(({ metadata }) => metadata.annotations['helm.sh/hook'] === undefined);
  const cleaners = all.find(({ metadata }) => metadata.annotations['helm.sh/hook'] === 'pre-delete');
  assert.ok(agents !== undefined && cleaners !== undefined && all.length === 2);
  return { agents, cleaners };
};
const render = async (...set: readonly string[]) => daemonSetsIn(await helm.render(...set));

describe('the pod of an agent', () => {
  const restricted = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
  const capable = { ...restricted, capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] } };

  test('has two capabilities and is not privileged, also where it cleans', async () => {
    const { agents, cleaners } = await render();
    const { spec } = agents.spec.template;
    assert.deepEqual(
      spec.containers.map(({ securityContext }) => securityContext),
      [capable],
    );
    assert.deepEqual(spec.securityContext, { runAsUser: 0, seccompProfile: { type: 'RuntimeDefault' } });
    const cleaning = cleaners.spec.template.spec;
    assert.deepEqual(
      [...cleaning.initContainers, ...cleaning.containers].map(({ name, securityContext }) => [name, securityContext]),
      [
        ['clean', capable],
        [
          'cleaned',
          { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, ...restricted, capabilities: { drop: ['ALL'] } },
        ],
      ],
    );
    assert.doesNotMatch(JSON.stringify([agents, cleaners]), /privileged|hostPID|hostIPC/);
  });

  test('sees two places of its node: a folder of its own in /run, and the settings of the network', async () => {
    const { spec } = (await render()).agents.spec.template;
    assert.equal(spec.hostNetwork, true);
    assert.deepEqual(
      spec.volumes.flatMap(({ name, hostPath }) => (hostPath === undefined ? [] : [[name, hostPath]])),
      [
        ['state', { path: '/run/sallyport', type: 'DirectoryOrCreate' }],
        ['settings', { path: '/proc/sys/net', type: 'Directory' }],
      ],
    );
    const [agent] = spec.containers;
    assert.deepEqual(
      agent?.volumeMounts.map(({ name, mountPath }) => [name, mountPath]),
      [
        ['config', '/etc/sallyport'],
        ['state', '/run/sallyport'],
        ['settings', '/host/proc/sys/net'],
      ],
    );
    const folders = [
      '--config=/etc/sallyport/config.yaml',
      '--state-folder=/run/sallyport',
      '--sysctl-root=/host/proc/sys',
    ];
    assert.deepEqual(agent?.args.slice(1, 4), folders);
  });

  test('runs on every node, comes before other pods, and is replaced a few nodes at a time', async () => {
    const { spec } = (await render()).agents;
    assert.deepEqual(spec.updateStrategy, { rollingUpdate: { maxUnavailable: '10%' } });
    assert.deepEqual(spec.template.spec.tolerations, [
      { key: 'egressgateway.spidernet.io/agent-not-ready', operator: 'Exists' },
      { operator: 'Exists' },
    ]);
    assert.equal(spec.template.spec.priorityClassName, 'system-node-critical');
    const { agents } = await render('agent.maxUnavailable=3');
    assert.deepEqual(agents.spec.updateStrategy, { rollingUpdate: { maxUnavailable: 3 } });
  });

  test('cleans instead on request, exactly as when the release goes', async () => {
    const { agents, cleaners } = await render('agent.clean=true');
    assert.deepEqual(agents.spec, cleaners.spec);
    const [clean] = agents.spec.template.spec.initContainers;
    assert.equal(clean?.args.at(-1), '--clean');
    assert.equal(agents.spec.template.spec.automountServiceAccountToken, false);
  });

  test('where it cleans it holds the port of the agents, so that the two are never on a node together', async () => {
    const portsOf = ({ spec }: DaemonSet) => spec.template.spec.containers.map(({ ports }) => ports);
    const { agents, cleaners } = await render('agent.healthPort=7001');
    assert.deepEqual(portsOf(agents), [[{ name: 'health', containerPort: 7001, hostPort: 7001 }]]);
    assert.deepEqual(portsOf(cleaners), portsOf(agents));
  });

  test('is left out on request, with all that belongs to it', async () => {
    const objects = await helm.render('agent.enabled=false');
    assert.deepEqual(
      objects.filter(({ metadata }) => /agent|removal|clean|own-tunnel/.test(metadata.name)),
      [],
    );
  });
});

describe('the API server', () => {
  const apply = async (objects: readonly Rendered[], ...args: readonly string[]) => {
    const list = stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    return kubectl(['apply', '--server-side', ...args, '-f', '-'], list);
  };

  test('takes every object, and warns of exactly what the strictest pod security forbids', async () => {
    await kubectl(['label', 'namespace', release.namespace, 'pod-security.kubernetes.io/warn=restricted']);
    // The operator's part is in chart-operator.test.ts; it needs a namespace that a dry run does not make.
    const { code, stderr } = await apply(await helm.render('operator.enabled=false'), '--dry-run=server');
    assert.equal(code, 0, stderr);
    const [, ...warnings] = stderr.split(/^Warning: would violate PodSecurity "restricted:latest": /m);
    const warningOf = (capable: string, withPort: string) =>
      [
        'host namespaces (hostNetwork=true)',
        `hostPort (container "${withPort}" uses hostPort 7790)`,
        `unrestricted capabilities (container "${capable}" must not include "NET_ADMIN", "NET_RAW" in securityContext.capabilities.add)`,
        'restricted volume types (volumes "state", "settings" use restricted volume type "hostPath")',
        `runAsNonRoot != true (pod or container "${capable}" must set securityContext.runAsNonRoot=true)`,
        'runAsUser=0 (pod must not set runAsUser=0)',
      ].join(', ');
    assert.deepEqual(
      warnings.map((warning) => warning.trim()),
      [warningOf('agent', 'agent'), warningOf('clean', 'cleaned')],
    );
  });

  test('lets an agent report for its own node and for no other, and change nothing that the controller gives', async () => {
    const objects = await helm.render('operator.enabled=false');
    const wanted = /CustomResourceDefinition|Role|ServiceAccount|ValidatingAdmissionPolicy/;
    assert.equal((await apply(objects.filter(({ kind }) => wanted.test(kind)))).code, 0);
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=180s']);
    const tunnel = (name: string, status: object) =>
      JSON.stringify({
        apiVersion: 'egressgateway.spidernet.io/v1beta1',
        kind: 'EgressTunnel',
        metadata: { name },
        status,
      });
    const status = (name: string, value: object, ...who: readonly string[]) =>
      kubectl(
        ['apply', '--server-side', '--subresource=status', '--force-conflicts', ...who, '-f', '-'],
        tunnel(name, value),
      );
    const given = { mark: '0x26000100', phase: 'Ready', tunnel: { ipv4: '172.31.0.1', mac: '66:00:00:00:00:01' } };
    for (const name of ['node-a', 'node-b']) {
      await kubectl(['create', '-f', '-'], tunnel(name, {}));
      assert.equal((await status(name, given, '--field-manager=controller')).code, 0);
    }
    const account = `system:serviceaccount:${release.namespace}:sallyport-agent`;
    const on = (node: string) => ['--as', account, '--as-user-extra', `authentication.kubernetes.io/node-name=${node}`];
    const report = { lastHeartbeatTime: '2026-01-01T00:00:00Z', tunnel: { parent: { name: 'eth0' } } };
    const agent = ['--field-manager=agent'];

    // The API server takes a new policy into use after a moment.
    await until({ what: 'the policy in force', limitMs: 30_000, everyMs: 200 }, async () => {
      return (await status('node-b', report, ...agent, ...on('node-a'))).code !== 0;
    });
    const other = await status('node-b', report, ...agent, ...on('node-a'));
    assert.match(other.stderr, /an agent writes the EgressTunnel of its own node only, and node-b is not node-a/);
    const anywhere = await status('node-a', report, ...agent, '--as', account);
    assert.match(anywhere.stderr, /node-a is not the node of this token, which names none/);
    const own = await status('node-a', report, ...agent, ...on('node-a'));
    assert.equal(own.code, 0, own.stderr);
    for (const stolen of [{ mark: '0x26000200' }, { phase: 'Failed' }, { tunnel: { mac: '66:00:00:00:00:02' } }]) {
      const { code, stderr } = await status('node-a', stolen, '--field-manager=thief', ...on('node-a'));
      assert.notEqual(code, 0, JSON.stringify(stolen));
      assert.match(stderr, /given by the controller|must not change/);
    }
    assert.equal((await status('node-b', { phase: 'Failed' }, '--field-manager=controller')).code, 0, 'others may');
  });

  test('lets the controller take the start-up taint off a node, and change nothing else of it', async () => {
    const ours = { key: 'egressgateway.spidernet.io/agent-not-ready', effect: 'NoSchedule' };
    const other = { key: 'example.com/other', effect: 'NoSchedule' };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'tainted' }, spec: { taints: [other, ours] } };
    await kubectl(['create', '-f', '-'], JSON.stringify(node));
    const account = `system:serviceaccount:${release.namespace}:sallyport-controller`;
    // kubectl reads what it patches, which the controller has no need for.
    await kubectl(['create', 'clusterrole', 'reads-nodes', '--verb=get', '--resource=nodes']);
    await kubectl(['create', 'clusterrolebinding', 'reads-nodes', '--clusterrole=reads-nodes', `--user=${account}`]);
    const patch = (...operations: readonly object[]) =>
      kubectl(['patch', 'node', 'tainted', '--type=json', `--patch=${JSON.stringify(operations)}`, '--as', account]);
    const list = JSON.parse((await kubectl(['get', 'node', 'tainted', '-o', 'jsonpath={.spec.taints}'])).stdout);
    const [mine, theirs] = [ours, other].map(({ key }) =>
      list.findIndex((taint: { key: string }) => taint.key === key),
    );
    const forbidden = [
      { op: 'remove', path: `/spec/taints/${theirs}` },
      { op: 'add', path: '/spec/taints/-', value: { key: 'example.com/new', effect: 'NoExecute' } },
      { op: 'add', path: '/spec/unschedulable', value: true },
      { op: 'add', path: '/metadata/labels', value: { egress: 'true' } },
    ];
    // The API server takes new rights and a new policy into use after a moment.
    await until({ what: 'the policy in force', limitMs: 30_000, everyMs: 200 }, async () => {
      const { stderr } = await patch({ op: 'add', path: '/metadata/annotations', value: { tried: 'it' } });
      return stderr.includes('nothing of a node but');
    });
    for (const operation of forbidden) {
      const { code, stderr } = await patch(operation);
      assert.notEqual(code, 0, JSON.stringify(operation));
      assert.match(stderr, /no other one|nothing of a node but its start-up taint/);
    }
    const taken = await patch(
      { op: 'test', path: `/spec/taints/${mine}/key`, value: ours.key },
      { op: 'remove', path: `/spec/taints/${mine}` },
    );
    assert.equal(taken.code, 0, taken.stderr);
  });

  test('gives an agent what it needs and nothing near it', async () => {
    const may = async (...question: readonly string[]) => {
      const user = `system:serviceaccount:${release.namespace}:sallyport-agent`;
      return (await kubectl(['auth', 'can-i', '--as', user, ...question])).stdout.trim();
    };
    assert.equal(await may('watch', 'pods', '--all-namespaces'), 'yes');
    assert.equal(await may('patch', 'egresstunnels', '--subresource=status'), 'yes');
    for (const question of [
      ['patch', 'egresstunnels'],
      ['delete', 'egresstunnels'],
      ['patch', 'egresspolicies', '--subresource=status'],
      ['get', 'secrets', '--namespace', release.namespace],
      ['patch', 'nodes'],
      ['create', 'pods', '--namespace', release.namespace],
    ]) {
      assert.equal(await may(...question), 'no', question.join(' '));
    }
  });
});
