import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { EgressClusterInfoStatus, RecordedElectorate } from '../../api/egress-cluster-info.ts';
import { isKindName, kinds, resourceOf } from '../../api/kinds.ts';
import { gatewayObject, nodeObject } from '../../core/testing/objects.ts';
import type { KubeObject, Resource } from '../../runtime/kube/resource.ts';
import { startTestApiServer, type TestApiServer } from '../../runtime/testing/api-server.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import type { ControlLoop, ControlLoopDeps } from '../loop/control-loop.ts';
import { followMembers } from '../membership/members.ts';
import { planLoop } from '../plan/control-loop.ts';
import { Heartbeats } from '../plan/heartbeats.ts';
import { coreResources, type RunningControlLoop, startControlLoop } from '../testing.ts';
import { electorateLoop } from './control-loop.ts';

const [nodes] = coreResources as [Resource]; // Nodes are the first of the list.
const infos = resourceOf('EgressClusterInfo');
const tunnels = resourceOf('EgressTunnel');
const resources = [...coreResources, ...Object.keys(kinds).filter(isKindName).map(resourceOf)];

let server: TestApiServer;
before(async () => {
  server = await startTestApiServer({ resources });
});
after(() => server?.stop());

/** Test objects carry metadata as the API server gives it. */
const put = (resource: Resource, object: object) => server.put(resource, object as KubeObject);
const electorate = (): RecordedElectorate | undefined => {
  const status: EgressClusterInfoStatus | undefined = Object(server.read(infos, 'default')).status;
  return status?.electorate;
};
const text = (): string => {
  const { generation, voters, apiVotes } = electorate() ?? { generation: 0, voters: [], apiVotes: false };
  return `${generation}: ${voters.join(' ')}${apiVotes ? ' api' : ''}`;
};

/** The plan and the electorate as one part, as a leader runs them. */
const both = (deps: ControlLoopDeps): ControlLoop => {
  const plan = planLoop(deps, followMembers(deps.caches), new Heartbeats(deps.caches, deps.clock));
  const electing = electorateLoop(deps, plan);
  return {
    name: 'both',
    missing: () => [...plan.missing(), ...electing.missing()],
    run: async (signal) => {
      await Promise.all([plan.run(signal), electing.run(signal)]);
    },
  };
};

/** What the agent of a node writes: that its tunnel stands, and the electorate that it goes by. */
const report = async (
  { client }: RunningControlLoop<ControlLoop>,
  node: string,
  present: RecordedElectorate | undefined,
): Promise<void> => {
  await eventually(`the tunnel of ${node}`, () => Object(server.read(tunnels, node)).status?.mark !== undefined);
  const status = {
    tunnel: { parent: { name: 'eth0' } },
    report: { ...(present === undefined ? {} : { electorate: present }) },
  };
  await client.applyStatus(tunnels, { metadata: { name: node }, status } as KubeObject, { fieldManager: 'agent' });
};

describe('electoratePart', () => {
  it('waits a little for nodes that are starting before it names the first electorate', async () => {
    const early = await startTestApiServer({ resources });
    const putEarly = (resource: Resource, object: object) => early.put(resource, object as KubeObject);
    putEarly(infos, { metadata: { name: 'default' }, spec: {} });
    putEarly(resourceOf('EgressGateway'), gatewayObject('g', { ipv4: ['10.6.1.1'] }));
    for (const name of ['a', 'b', 'c']) putEarly(nodes, nodeObject(name, ['10.0.0.1']));
    const running = await startControlLoop({ access: early.access }, both);
    const read = (resource: Resource, name: string) => Object(early.read(resource, name)).status;
    try {
      for (const name of ['a', 'b', 'c']) {
        await eventually(`the tunnel of ${name}`, () => read(tunnels, name)?.mark !== undefined);
        const status = { tunnel: { parent: { name: 'eth0' } } };
        const object = { metadata: { name }, status } as KubeObject;
        await running.client.applyStatus(tunnels, object, { fieldManager: 'agent' });
        await eventually(`${name} is ready`, () => read(tunnels, name)?.phase === 'Ready');
      }
      await eventually('an electorate', () => read(infos, 'default')?.electorate !== undefined);
      assert.deepEqual(read(infos, 'default').electorate, { generation: 1, voters: ['a', 'b', 'c'], apiVotes: false });
    } finally {
      await running.stop();
      await early.stop();
    }
  });

  it('names voters, waits for reports before the next change, and goes on after a restart', async () => {
    put(infos, { metadata: { name: 'default' }, spec: {} });
    for (const name of ['a', 'b', 'c']) put(nodes, nodeObject(name, ['10.0.0.1']));
    const first = await startControlLoop({ access: server.access }, both);
    try {
      await Promise.all(['a', 'b', 'c'].map((name) => report(first, name, undefined)));
      assert.equal(electorate(), undefined, 'without a gateway nobody has to vote');
      put(resourceOf('EgressGateway'), gatewayObject('g', { ipv4: ['10.6.1.1'] }));
      await eventually('the first electorate', () => text() === '1: a b c');
      put(nodes, nodeObject('d', ['10.0.0.4']));
      put(nodes, nodeObject('c', ['10.0.0.3'], { egress: 'true' }, false));
      await report(first, 'd', electorate());
      await report(first, 'a', electorate());
      await eventually('the node is lost', () => Object(server.read(tunnels, 'c')).status?.phase === 'NodeNotReady');
      // Else the lost one would go before the new one comes.
      await eventually('d is ready', () => Object(server.read(tunnels, 'd')).status?.phase === 'Ready');
      assert.equal(text(), '1: a b c', 'b has not reported yet');
      await report(first, 'b', electorate());
      await eventually('one more', () => text() === '2: a b c d');
    } finally {
      await first.stop();
    }
    const second = await startControlLoop({ access: server.access }, both);
    try {
      assert.equal(text(), '2: a b c d');
      await Promise.all(['a', 'b', 'd'].map((name) => report(second, name, electorate())));
      await eventually('one less', () => text() === '3: a b d');
      server.delete(infos, 'default');
      await Promise.all(
        ['a', 'b', 'd'].map((name) =>
          report(second, name, { generation: 3, voters: ['a', 'b', 'd'], apiVotes: false }),
        ),
      );
      put(infos, { metadata: { name: 'default' }, spec: {} });
      await eventually('what agents go by, in the new object', () => text() === '3: a b d');
    } finally {
      await second.stop();
    }
  });
});
