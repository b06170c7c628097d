import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyPlan } from '../plan/policy-plan.ts';
import { ip } from '../testing/address.ts';
import { gatewayObject, nodeObject, policyObject, step, worldOf } from '../testing/objects.ts';
import { anyRevision, type NodeProgress, programmedFinding } from './programmed.ts';

const gateway = gatewayObject('g', { ipv4: ['10.6.1.1'] });

/** The plan of policy red/p, on a gateway with one node or with none. */
const planOf = (nodes: readonly string[], shape: { gateway?: string; onUnavailable?: string } = {}): PolicyPlan => {
  const machines = nodes.map((name) => nodeObject(name, ['10.0.0.1']));
  const [first] = step(worldOf(machines, [gateway], [policyObject('red/p', { gateway: 'g', ...shape })])).policies;
  assert.ok(first !== undefined);
  return first;
};
const served = planOf(['a']);

const nodeAt = (node: string, applied: string | undefined, rest: Partial<NodeProgress> = {}): NodeProgress => ({
  node,
  isHeard: true,
  applied,
  problems: [],
  hasMoreProblems: false,
  ...rest,
});
const reasonOf = (revision: string | undefined, ...nodes: readonly NodeProgress[]) =>
  programmedFinding(served, { revision, nodes, unreadyGatewayNode: undefined, conflicts: [], isHeld: true }).reason;

describe('programmedFinding', () => {
  it('says what happens to traffic while nobody serves', () => {
    const nobody = { revision: undefined, nodes: [], unreadyGatewayNode: undefined, conflicts: [], isHeld: false };
    assert.equal(programmedFinding(planOf([]), nobody).reason, 'TrafficDropped');
    assert.equal(programmedFinding(planOf([], { onUnavailable: 'NodeIP' }), nobody).reason, 'TrafficOnNodeIp');
    assert.equal(programmedFinding(planOf([], { gateway: 'nowhere' }), nobody).reason, 'NotAccepted');
  });

  it('holds when every node has reached the revision', () => {
    assert.equal(reasonOf('99', nodeAt('a', '99'), nodeAt('b', '100')), 'KernelsInStep');
    assert.equal(reasonOf(anyRevision, nodeAt('a', '1')), 'KernelsInStep');
  });

  it('names the nodes that are waited for', () => {
    const { reason, sentence } = programmedFinding(served, {
      revision: '100',
      nodes: [nodeAt('a', '100'), nodeAt('b', '99'), nodeAt('c', undefined)],
      unreadyGatewayNode: undefined,
      conflicts: [],
      isHeld: false,
    });
    assert.equal(reason, 'WaitingForNodes');
    assert.match(sentence, /^Policy red\/p is not in the kernel of b, c yet\./);
  });

  it('names the machine that claims the EIP of the policy, and is silent about other EIPs', () => {
    const conflict = { ip: ip('10.6.1.1'), mac: '66:00:00:00:00:09', interface: 'eth0' };
    const progress = { revision: '1', nodes: [nodeAt('a', '9')], unreadyGatewayNode: undefined, isHeld: true };
    const { reason, sentence } = programmedFinding(served, { ...progress, conflicts: [conflict] });
    assert.equal(reason, 'EipInUse');
    assert.match(sentence, /^Node a holds EIP 10\.6\.1\.1, and 66:00:00:00:00:09 claims it too, seen on eth0/);
    const other = { ...conflict, ip: ip('10.6.1.2') };
    assert.equal(programmedFinding(served, { ...progress, conflicts: [other] }).reason, 'KernelsInStep');
  });

  it('waits for the gateway node to answer for the EIP, whose rules all kernels have', () => {
    const { reason, sentence } = programmedFinding(served, {
      revision: '1',
      nodes: [nodeAt('a', '9'), nodeAt('b', '9')],
      unreadyGatewayNode: undefined,
      conflicts: [],
      isHeld: false,
    });
    assert.equal(reason, 'WaitingForNodes');
    assert.match(sentence, /^Gateway node a does not answer for the EIP of policy red\/p yet\./);
  });

  it('waits for everybody while the change is not written', () => {
    assert.equal(reasonOf(undefined, nodeAt('a', '100')), 'WaitingForNodes');
  });

  it('is not known while a node is silent, and fails while another one is behind', () => {
    const silent = nodeAt('b', '100', { isHeard: false });
    assert.equal(reasonOf('100', nodeAt('a', '100'), silent), 'NodeSilent');
    assert.equal(reasonOf('100', nodeAt('a', '99'), silent), 'WaitingForNodes');
  });

  it('gives the problem of a node as the reason', () => {
    const refused = { reason: 'NftRefused', message: 'The kernel refused an element.', policy: 'red/p' };
    const broken = { reason: 'EipDeviceFailed', message: 'Neither dummy nor bridge.' };
    const { reason, sentence } = programmedFinding(served, {
      revision: '1',
      nodes: [nodeAt('a', '9'), nodeAt('b', '9', { problems: [refused] })],
      unreadyGatewayNode: undefined,
      conflicts: [],
      isHeld: false,
    });
    assert.deepEqual([reason, sentence], ['NftRefused', 'Node b: The kernel refused an element.']);
    assert.equal(reasonOf('1', nodeAt('a', '9', { problems: [broken] })), 'EipDeviceFailed');
  });

  it('leaves out problems of other policies, and of nodes where they keep nothing out of the kernel', () => {
    const other = { reason: 'NftRefused', message: '', policy: 'red/other' };
    const lost = { reason: 'HeartbeatLost', message: '' };
    assert.equal(reasonOf('1', nodeAt('a', '9', { problems: [other, lost] })), 'KernelsInStep');
  });

  it('is not known for a policy beyond the problems that a report has room for', () => {
    const other = { reason: 'NftRefused', message: '', policy: 'red/other' };
    const full = nodeAt('a', '9', { problems: [other], hasMoreProblems: true });
    const { reason, sentence } = programmedFinding(served, {
      revision: '1',
      nodes: [full],
      unreadyGatewayNode: undefined,
      conflicts: [],
      isHeld: true,
    });
    assert.equal(reason, 'ProblemsNotListed');
    assert.match(sentence, /^a has more problems than its report names; policy red\/p may be among them\./);
    const own = { reason: 'NftRefused', message: '', policy: 'red/p' };
    assert.equal(reasonOf('1', nodeAt('a', '9', { problems: [own], hasMoreProblems: true })), 'NftRefused');
  });

  it('is not known while Kubernetes says that the gateway node is not ready, whatever it reported last', () => {
    const progress = { revision: '1', nodes: [nodeAt('a', '9')], unreadyGatewayNode: 'a', conflicts: [], isHeld: true };
    const { reason, sentence } = programmedFinding(served, progress);
    assert.equal(reason, 'GatewayNodeNotReady');
    assert.match(
      sentence,
      /^Kubernetes says that node a is not ready; whether it carries policy red\/p is not known\./,
    );
  });

  it('takes the word of an agent that is newer than we are', () => {
    const unheard = { reason: 'SomethingNew', message: 'What nobody knew.', policy: 'red/p' };
    const { reason, sentence } = programmedFinding(served, {
      revision: '1',
      nodes: [nodeAt('a', '9', { problems: [unheard] })],
      unreadyGatewayNode: undefined,
      conflicts: [],
      isHeld: true,
    });
    assert.deepEqual([reason, sentence], ['WaitingForNodes', 'Node a: What nobody knew. (SomethingNew)']);
  });

  it('holds exactly when the gateway node is ready, all nodes are heard, without problems and at the revision, and the EIP is held', () => {
    const node = fc.record({
      node: fc.constantFrom('a', 'b', 'c'),
      isHeard: fc.boolean(),
      applied: fc.option(
        fc.nat(30).map((number) => `${number}`),
        { nil: undefined },
      ),
      problems: fc.constantFrom([], [{ reason: 'NftRefused', message: '', policy: 'red/p' }]),
      hasMoreProblems: fc.boolean(),
    });
    const unready = fc.constantFrom(undefined, 'a');
    fc.assert(
      fc.property(
        fc.nat(30),
        fc.array(node, { maxLength: 4 }),
        fc.boolean(),
        unready,
        (revision, nodes, isHeld, unreadyGatewayNode) => {
          const areThere = nodes.every(
            ({ isHeard, applied, problems, hasMoreProblems }) =>
              isHeard && problems.length === 0 && !hasMoreProblems && Number(applied ?? -1) >= revision,
          );
          const progress = { revision: `${revision}`, nodes, unreadyGatewayNode, conflicts: [], isHeld };
          const { reason } = programmedFinding(served, progress);
          assert.equal(reason === 'KernelsInStep', areThere && isHeld && unreadyGatewayNode === undefined);
        },
      ),
    );
  });
});
