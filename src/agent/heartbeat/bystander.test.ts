/** Real UDP sockets on loopback addresses in place of tunnel addresses; the owner is a thread. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OwnershipPlan } from '../../core/ownership/port.ts';
import { ip } from '../../core/testing/address.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { freePort } from '../../runtime/testing/free-port.ts';
import { Bystander } from './bystander.ts';
import { Heartbeat, type Tidings } from './heartbeat.ts';

const eip = ip('10.6.1.1');
const addresses = new Map([
  ['owner', '127.0.78.1'],
  ['worker', '127.0.78.2'],
]);
const electorate = { generation: 1, voters: ['owner'], hasApi: false };
const plan: OwnershipPlan = {
  electorate,
  gateways: ['owner'],
  nodes: ['owner', 'worker'],
  eips: [{ eip, epoch: 0, candidates: ['owner'] }],
};
const common = {
  keys: [new Uint8Array(32).fill(7)],
  timing: { heartbeatMs: 100, heartbeatCount: 4, graceMs: 1_600 },
  held: [],
  firstSignature: undefined,
} as const;

describe('Bystander', () => {
  it('hears who owns, without a thread', async () => {
    const port = await freePort();
    const told: Tidings[] = [];
    const failed = (error: Error): never => assert.fail(error);
    const data = (node: string) => ({ ...common, node, port, address: addresses.get(node) ?? assert.fail() });
    const bystander = new Bystander({ ...data('worker'), takesPart: false }, { told: (one) => told.push(one), failed });
    await bystander.listening();
    bystander.setAddresses(addresses);
    bystander.take({ kind: 'plan', plan: { electorate, gateways: [], nodes: [], eips: [] } });
    const owner = new Heartbeat({ ...data('owner'), takesPart: true }, { told: () => {}, failed });
    await owner.listening();
    owner.setAddresses(addresses, new Map());
    owner.take({ kind: 'plan', plan });
    const heard = () => told.find((one) => one.kind === 'owner');
    await eventually('the worker hears', () => heard() !== undefined, 20_000);
    const word = heard();
    assert.ok(word?.kind === 'owner');
    assert.deepEqual([word.eip, word.node], [eip, 'owner']);
    await owner.close();
    await bystander.close();
    await bystander.close();
  });

  it('fails when its address is not one of this node', async () => {
    const failed = Promise.withResolvers<Error>();
    const data = { ...common, node: 'worker', address: '192.0.2.1', port: await freePort(), takesPart: false };
    const bystander = new Bystander(data, { told: () => {}, failed: failed.resolve });
    await assert.rejects(bystander.listening(), /EADDRNOTAVAIL/);
    assert.match((await failed.promise).message, /EADDRNOTAVAIL/);
  });
});
