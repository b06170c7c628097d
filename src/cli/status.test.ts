import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusOf } from './status.ts';
import { statusText } from './status-text.ts';
import { failing, objects, office, orders, programs, withStatus } from './testing/shop.ts';
import { plain } from './text.ts';

const text = (...parts: Parameters<typeof statusOf>): string => `${statusText(statusOf(...parts), plain).join('\n')}\n`;

describe('status', () => {
  it('is one screen when everything is fine', () => {
    assert.equal(
      text(objects, programs),
      `Everything is fine.

Programs
  NAME                            READY
  sallyport/sallyport-agent       3/3
  sallyport/sallyport-controller  2/2

Gateways
  NAME    IPV4 IN USE  IPV6 IN USE  NODE       PHASE  POLICIES  EIPS
  office  1 of 10      1 of 10      gateway-1  Ready  1         10.77.0.100 fd77::100
                                    gateway-2  Ready  0         -

Policies: 1, all fine

Nodes: 3, all fine

Inside the cluster
  pods        10.244.0.0/16 fd44::/48
  services    10.96.0.0/12 fd96::/108
  nodes       10.77.0.11 10.77.0.12 10.77.0.13 fd77::11 fd77::12 fd77::13
  apiServers  -
  custom      -
`,
    );
  });

  it('shows who owns EIPs and who votes, once nodes vote', () => {
    const [first = orders, second = orders, worker = orders] = objects.tunnels;
    const electorate = { generation: 3, voters: ['gateway-1', 'gateway-2'], apiVotes: true };
    const held = (epoch: number) => ({ ip: '10.77.0.100', epoch });
    const { clusterInfo = orders } = objects;
    const voting = {
      ...objects,
      clusterInfo: withStatus(clusterInfo, { electorate }),
      tunnels: [
        withStatus(first, { report: { eips: [held(4)], electorate: { ...electorate, generation: 2 } } }),
        withStatus(second, { report: { eips: [held(5)], electorate } }),
        worker,
      ],
    };
    assert.match(
      text(voting, programs),
      /\nOwners of EIPs, by votes of gateway-1, gateway-2, the API server \(electorate 3\)\n {2}nodes that have not applied this electorate yet: gateway-1\n {2}EIP {20}OWNER {6}EPOCH\n {2}10\.77\.0\.100 fd77::100 {2}gateway-2 {2}5 {6}recorded: gateway-1\n\nPolicies/,
    );
  });

  it('shows who serves policies with the node IP, as soon as nodes have agreed on it', () => {
    const [first = orders, second = orders, worker = orders] = objects.tunnels;
    const electorate = { generation: 3, voters: ['gateway-1', 'gateway-2'], apiVotes: true };
    const nodeList = [{ name: 'gateway-1', status: 'Ready', eips: [{ policies: [{ name: 'p', namespace: 'shop' }] }] }];
    const [gateway = orders] = objects.gateways;
    const group = { gateway: gateway.metadata.name, node: 'gateway-1', epoch: 2 };
    const { clusterInfo = orders } = objects;
    const votingWith = (nodeGroups: readonly object[]) => ({
      ...objects,
      clusterInfo: withStatus(clusterInfo, { electorate }),
      gateways: [withStatus(gateway, { nodeList })],
      tunnels: [first, withStatus(second, { report: { nodeGroups, electorate } }), worker],
    });
    assert.match(
      text(votingWith([group]), programs),
      / {2}EIP {19}OWNER {6}EPOCH\n {2}node IP of gateway-1 {2}gateway-2 {2}2 {6}recorded: gateway-1\n/,
    );
    assert.doesNotMatch(text(votingWith([]), programs), /node IP of/);
  });

  it('tells reason, sentence and remedy of what is not fine', () => {
    const [first = orders, second = orders, worker = orders] = objects.tunnels;
    const message =
      'No node of gateway office is ready: gateway-1. See the EgressTunnels of the nodes that the message names.';
    const silent = 'The agent of node worker-1 has not been heard of for too long. Look at the node and its agent.';
    const broken = {
      ...objects,
      gateways: [
        withStatus(office, {
          nodeList: [],
          conditions: [
            failing('Accepted', 'Valid', 'Gateway office selects 1 nodes.', 'True'),
            failing('Ready', 'NoReadyNode', message),
          ],
        }),
      ],
      policies: [
        withStatus(orders, { conditions: [failing('Accepted', 'PoolEmpty', 'Gateway office has no addresses.')] }),
        { ...orders, metadata: { ...orders.metadata, name: 'new' }, status: undefined },
        { ...orders, metadata: { ...orders.metadata, name: 'edited', generation: 2 } },
        {
          ...orders,
          metadata: { ...orders.metadata, name: 'going', deletionTimestamp: '2026-01-01T00:00:00Z' },
          status: {},
        },
      ],
      tunnels: [
        withStatus(first, {
          report: {
            problems: [{ reason: 'EipInUse', message: '66:00:00:00:00:09 answers for 10.77.0.100.' }],
            conflicts: [{ ip: '10.77.0.101', mac: '66:00:00:00:00:08', interface: 'eth0' }],
            detectionMilliseconds: 400,
          },
        }),
        withStatus(second, { phase: 'Init', conditions: [] }),
        withStatus(worker, { phase: 'HeartbeatTimeout', conditions: [failing('Ready', 'HeartbeatLost', silent)] }),
      ],
      clusterInfo: undefined,
    };
    const [controller = programs[0], agent] = programs;
    assert.ok(controller !== undefined && agent !== undefined);
    assert.equal(
      text(broken, [controller, { ...agent, status: { numberReady: 2, desiredNumberScheduled: 3 } }]),
      `10 things are not fine.

Programs
  NAME                            READY
  sallyport/sallyport-agent       2/3
  sallyport/sallyport-controller  2/2
  ! sallyport/sallyport-agent
      2 of 3 pods are ready.
      Check the pods and their logs.

Gateways
  NAME    IPV4 IN USE  IPV6 IN USE  NODE     PHASE  POLICIES  EIPS
  office  0 of 10      0 of 10      no node
  ! office  NoReadyNode
      No node of gateway office is ready: gateway-1.
      See the EgressTunnels of the nodes that the message names.

Policies: 4, 3 not fine
  ! shop/edited
      The controller has not reconciled its last change yet.
      Wait a moment, then check the controller.
  ! shop/new
      The controller has not reconciled it yet.
      Wait a moment, then check the controller.
  ! shop/orders  PoolEmpty
      Gateway office has no addresses.
      Add addresses to the gateway, or set useNodeIP.

Nodes: 3, 3 not fine
  ! gateway-1  EipInUse
      66:00:00:00:00:09 answers for 10.77.0.100.
      Take the address off the machine whose MAC address the message names, or remove it from the pool.
  ! gateway-1  EipInUse
      Node gateway-1 holds EIP 10.77.0.101, and 66:00:00:00:00:08 claims it too, seen on eth0 of that node.
      Take the address off the machine whose MAC address the message names, or remove it from the pool.
  ! gateway-2
      Its tunnel is in phase Init.
      Wait a moment, then check the controller.
  ! worker-1  HeartbeatLost
      The agent of node worker-1 has not been heard of for too long.
      Look at the node and its agent.
  - gateway-1  DetectionSlowed
      Node gateway-1 notices the loss of a gateway node after up to 400 ms: it, or nodes that it watches, have too little processor.
      Give the nodes more processor, or see what takes it; a minute after messages come in time again the condition is gone.

Inside the cluster
  ! default
      The controller has not detected yet which addresses belong to the cluster.
      Wait a moment, then check the controller.
`,
    );
  });

  it('stays one screen however much there is, and says what it left out', () => {
    const many = Array.from({ length: 30 }, (_, index) => ({
      ...orders,
      metadata: { ...orders.metadata, name: `p${String(index).padStart(2, '0')}` },
      status: {},
    }));
    const lines = text({ ...objects, policies: many }, programs).split('\n');
    assert.ok(lines.includes('Policies: 30, 30 not fine'));
    assert.ok(lines.includes('  ... and 10 more; -o json lists all'));
    assert.equal(statusOf({ ...objects, policies: many }, programs).problems.length, 30);
  });

  it('does not take objects that nobody looks after for fine ones', () => {
    assert.equal(statusOf(objects, []).problems[0]?.name, 'sallyport');
  });

  it('does not take a program that is scaled to nothing for a fine one', () => {
    const off = programs.map((program) => ({ ...program, spec: { replicas: 0 }, status: {} }));
    assert.equal(statusOf(objects, off).problems[0]?.sentence, '0 of 0 pods are ready.');
  });

  it('reads a pool that is larger than a number', () => {
    const ipUsage = {
      ipv4Total: 0,
      ipv4Free: 0,
      ipv6Total: Number.MAX_SAFE_INTEGER,
      ipv6Free: Number.MAX_SAFE_INTEGER,
    };
    assert.match(text({ ...objects, gateways: [withStatus(office, { ipUsage })] }, programs), /1 of 2\^53 or more/);
  });

  it('takes a status that somebody has broken for one that is not there', () => {
    const broken = { ...orders, status: { slot: 'seventeen' } };
    assert.equal(statusOf({ ...objects, policies: [broken] }, programs).problems[0]?.reason, undefined);
  });
});
