import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { EgressError } from '../../api/error.ts';
import { MapChangeLog } from '../../core/incremental/change-log.ts';
import type { NodeDesired } from '../../core/node/desired.ts';
import { gatewayMark, markText, slotMark, snatMark } from '../../core/node/numbers.ts';
import type { Gone } from '../../dataplane/conntrack/conntrack.ts';
import { systemClock } from '../../runtime/process/clock.ts';
import type { Kernel } from '../kernel/kernel.ts';
import { createFakeNode, type FakeNode, noGate } from '../testing/fake-node.ts';
import { gatewayNode } from '../testing/gateway-node.ts';
import { Applier } from './applier.ts';
import { nothingToRestore, readRestoredState } from './restore.ts';

const none = gatewayNode().desired;
const one = gatewayNode('web').desired;
const two = gatewayNode('web', 'db').desired;

describe('Applier', () => {
  let node: FakeNode;
  let told: string[];
  beforeEach(async () => {
    node = await createFakeNode(systemClock);
    told = [];
  });
  const open = (kernel: Kernel = node.kernel(), found = nothingToRestore): Applier =>
    new Applier(
      kernel,
      {
        changed: (part) => void told.push(`changed ${part}`),
        repaired: (part) => void told.push(`repaired ${part}`),
        forgetFailed: ({ code }) => void told.push(code),
        cut: (connections) => void told.push(`cut ${connections}`),
        replaced: () => {},
      },
      found,
      noGate,
    );
  const apply = (applier: Applier, desired: NodeDesired) =>
    applier.apply(desired, async (wanted) =>
      (await applier.applyTable(wanted.table)) === undefined ? wanted : undefined,
    );
  const eips = async () => {
    const { addresses } = await node.network.read();
    return addresses.flatMap(({ device, ip }) => (device === 'egw-eip' ? [ip] : [])).toSorted();
  };
  const guarded = async () => [...((await node.kernel().nftables.read())?.elements.eips4.keys() ?? [])];

  it('makes the whole node so, and then does nothing until something else is wanted', async () => {
    const applier = open();
    assert.deepEqual((await apply(applier, one)).problems, []);
    assert.deepEqual(await eips(), ['10.6.0.100', 'fd06::100']);
    assert.deepEqual(await guarded(), ['10.6.0.100']);
    assert.ok(node.segment.sent.length > 0, 'announced');
    const said = node.network.kernel.said.length;
    const { transactions } = node.nft;
    told = [];
    assert.deepEqual(await apply(applier, one), { desired: one, problems: [], isDone: true });
    assert.deepEqual([node.network.kernel.said.length, node.nft.transactions, told], [said, transactions, []]);
    await apply(applier, none);
    assert.deepEqual([await eips(), await guarded()], [[], []]);
  });

  it('takes nothing away while the table is refused: what was in force still is, with all that it needs', async () => {
    const applier = open();
    await apply(applier, one);
    node.nft.failure = { code: 1, stdout: '', stderr: 'Error: Could not process rule: Cannot allocate memory' };
    for (const wanted of [none, two]) {
      const { desired, isDone } = await apply(applier, wanted);
      assert.deepEqual({ desired, isDone }, { desired: undefined, isDone: false });
      assert.ok(new Set(['10.6.0.100', 'fd06::100']).isSubsetOf(new Set<string>(await eips())));
    }
    node.nft.failure = undefined;
    assert.deepEqual(await guarded(), ['10.6.0.100']);
    assert.equal((await apply(applier, none)).isDone, true);
    assert.deepEqual([await eips(), await guarded()], [[], []]);
  });

  it('has the addresses and routes before the table sends packets there', async () => {
    const kernel = node.kernel();
    const before: string[][] = [];
    const nftables = {
      ...kernel.nftables,
      apply: async (...args: Parameters<Kernel['nftables']['apply']>) => {
        before.push(await eips());
        return kernel.nftables.apply(...args);
      },
    };
    const applier = open({ ...kernel, nftables });
    await apply(applier, one);
    await apply(applier, two);
    await apply(applier, none);
    assert.deepEqual(
      before.map(({ length }) => length),
      [0, 4, 4],
      'where there was no table it comes first; later, EIPs are there when it names them, and as long as it does',
    );
  });

  it('a gateway node that has booted lets packets of workers leave with its own address: no tunnel before the table', async () => {
    const applier = open();
    const isOpen = async () => (await node.network.read()).links.length > 0;
    node.nft.failure = { code: 1, stdout: '', stderr: 'Error: Could not process rule: Cannot allocate memory' };
    assert.equal((await apply(applier, one)).desired, undefined);
    assert.equal(await isOpen(), false, 'refused, so nothing comes in');
    node.nft.failure = undefined;
    assert.equal((await apply(applier, one)).isDone, true);
    assert.equal(await isOpen(), true);
  });

  it('tells a repair from a change', async () => {
    const applier = open();
    await apply(applier, one);
    assert.deepEqual(new Set(told), new Set(['changed network', 'changed sysctls', 'changed table']));
    told = [];
    await node.network.kernel.programs.run(['ip', 'addr', 'del', '10.6.0.100/32', 'dev', 'egw-eip']);
    node.sysctls.settings.set('net/ipv4/ip_forward', '0');
    node.nft.meddle('delete element inet sallyport eips4 { 10.6.0.100 }\n');
    assert.deepEqual((await apply(applier, one)).problems, []);
    assert.deepEqual(told, [], 'nobody has said that something may be wrong');
    for (const part of ['network', 'sysctls', 'table'] as const) applier.distrust(part);
    await apply(applier, one);
    assert.deepEqual(told, ['repaired network', 'repaired sysctls', 'repaired table']);
    assert.deepEqual([await eips(), await guarded()], [['10.6.0.100', 'fd06::100'], ['10.6.0.100']]);
  });

  it('tells what is refused, does everything else, and tries again', async () => {
    const applier = open();
    node.network.kernel.refuse(/addr (add|replace) fd06::100/, 'RTNETLINK answers: No buffer space available');
    node.sysctls.locked.add('net/ipv4/ip_forward');
    const { problems, isDone, desired } = await apply(applier, one);
    assert.deepEqual(
      problems.map(({ finding }) => finding.reason),
      ['RouteRefused', 'SysctlRefused'],
    );
    assert.deepEqual({ isDone, desired }, { isDone: false, desired: one });
    assert.deepEqual(await eips(), ['10.6.0.100']);
    node.network.kernel.refuse(/addr (add|replace) fd06::100/, undefined);
    node.sysctls.locked.clear();
    assert.deepEqual(await apply(applier, one), { desired: one, problems: [], isDone: true });
    assert.deepEqual(await eips(), ['10.6.0.100', 'fd06::100']);
  });

  it('forgets connections that left through another node, when their slot leaves here and when it starts', async () => {
    const slots = [...one.table.elements.slot_fwd.keys()];
    const [slot = 0] = slots.map((mark) => Number.parseInt(mark, 16) & 0x3fff);
    const elements = { ...one.table.elements, slot_fwd: new Map(slots.map((mark) => [mark, '0x26010001'])) };
    const elsewhere = { ...one, table: { ...one.table, elements } };
    const applier = open();
    await apply(applier, elsewhere);
    node.conntrack.connect(slot);
    await apply(applier, elsewhere);
    assert.equal(node.conntrack.count, 2, 'while it leaves elsewhere they are right');
    await apply(applier, one);
    assert.equal(node.conntrack.count, 0);
    for (const { ip } of one.claims) node.conntrack.redirect(slot, ip);
    const restarted = async () => open(node.kernel(), await readRestoredState(node.kernel(), []));
    await apply(await restarted(), one);
    assert.equal(node.conntrack.count, one.claims.length, 'a restart keeps those that leave with an EIP');
    node.conntrack.connect(slot);
    await apply(await restarted(), one);
    assert.equal(node.conntrack.count, one.claims.length, 'and finds those of an agent that died in between');
    await apply(applier, elsewhere);
    assert.equal(node.conntrack.count, 0, 'when it leaves elsewhere, what has an EIP cannot');
    for (const { ip } of one.claims) node.conntrack.redirect(slot, ip);
    await apply(await restarted(), elsewhere);
    assert.equal(node.conntrack.count, 0, 'also when that came about while no agent was there');
  });

  it('forgets the same connections when a change log tells which slots are others', async () => {
    const slots = [1, 2, 3];
    const [here, there] = [
      (slot: number) => markText(snatMark(slot)),
      (slot: number) => markText(gatewayMark(1, slot)),
    ];
    const ways = [there, here, there, undefined, here, undefined];
    const forgotten = async (changeLog: MapChangeLog<string> | undefined): Promise<Gone[]> => {
      const found: Gone[] = [];
      const conntrack = { ...node.conntrack, forget: async (gone: Gone) => found.push(gone) };
      const applier = open({ ...node.kernel(), conntrack });
      let slot_fwd = new Map<string, string>();
      for (const [step, way] of ways.entries()) {
        for (const slot of slots.filter((one) => (step + one) % 3 !== 0)) {
          const mark = markText(slotMark(slot));
          slot_fwd = new Map(slot_fwd);
          if (way === undefined) slot_fwd.delete(mark);
          else slot_fwd.set(mark, way(slot));
          changeLog?.touch(mark);
        }
        changeLog?.mark(slot_fwd);
        await apply(applier, { ...one, table: { ...one.table, elements: { ...one.table.elements, slot_fwd } } });
      }
      return found;
    };
    const [told, compared] = [await forgotten(new MapChangeLog()), await forgotten(undefined)];
    assert.deepEqual(told, compared);
    for (const kind of ['slots', 'here', 'elsewhere'] as const) assert.ok(told.some((gone) => gone[kind].length > 0));
  });

  it('forgets connections later when it cannot now', async () => {
    const kernel = node.kernel();
    let isBroken = true;
    const conntrack = {
      ...node.conntrack,
      forget: async (gone: Gone) => {
        if (isBroken) throw new EgressError('CONNTRACK_FAILED', 'not now');
        return node.conntrack.forget(gone);
      },
    };
    const applier = open({ ...kernel, conntrack });
    await apply(applier, one);
    const [slot] = [...one.table.elements.slot_fwd.keys()].map((mark) => Number.parseInt(mark, 16) & 0x3fff);
    node.conntrack.connect(slot);
    for (const { ip } of one.claims) node.conntrack.translate(ip);
    assert.equal((await apply(applier, none)).isDone, false);
    assert.deepEqual([node.conntrack.slots.length, node.conntrack.eips.length], [2, one.claims.length]);
    isBroken = false;
    assert.equal((await apply(applier, none)).isDone, true);
    assert.deepEqual([node.conntrack.slots, node.conntrack.eips], [[], []]);
  });
});
