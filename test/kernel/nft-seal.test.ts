/**
 * What leaves a worker and a gateway node while somebody has taken a part of the main table, or all of it: nothing of
 * policies, and everything else as before. Nobody repairs anything here.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { LEAVE_ALONE, markText } from '../../src/core/node/numbers.ts';
import { SEAL } from '../../src/dataplane/nft/stored.ts';
import { addresses, type Network, openNetwork } from './nft-network.ts';
import { CLASS, gateway, SNAT, tableOf, worker } from './nft-tables.ts';

const table = 'inet sallyport';

describe('while the table is tampered with', () => {
  let network: Network;
  before(async () => {
    network = await openNetwork('seal');
  });
  after(() => network?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    for (const one of [network.workerTable, network.gatewayTable]) one.distrust();
    await network.workerTable.apply(tableOf(worker));
    await network.gatewayTable.apply(tableOf(gateway));
    for (const node of [network.worker, network.gateway]) await node.must('conntrack', '-F');
    await network.sources();
  });

  for (const family of [4, 6] as const) {
    const at = addresses[family];
    const old = ['-e', '77', at.outside];

    /** A connection that was there before, and a new one. */
    const assertNothingLeaves = async (hit: () => Promise<unknown>): Promise<void> => {
      assert.ok(await network.ping(...old));
      assert.deepEqual(await network.sources(), [at.eip]);
      await hit();
      await network.ping(...old);
      await network.ping(at.outside);
      const foreign = (await network.sources()).filter((source) => source !== at.eip);
      assert.deepEqual(foreign, []);
    };

    describe(`IPv${family}`, () => {
      for (const [what, script] of [
        ['an element', `delete element ${table} pod${family} { ${at.pod} }`],
        ['a rule that ends a chain', `insert rule ${table} classify return`],
        ['the rules of a chain', `flush chain ${table} by_destination`],
        ['the rules of the first chain', `flush chain ${table} arrive`],
        ['the whole table', `delete table ${table}`],
      ] as const) {
        it(`nothing of a policy leaves its worker: ${what}`, async () => {
          await assertNothingLeaves(() => network.worker.nft(script));
        });
      }

      for (const [what, script] of [
        ['the rules for what comes from workers', `flush chain ${table} from_worker`],
        ['the EIP of the slot', `delete element ${table} slot_eip${family} { ${SNAT} }`],
        ['the rules that give EIPs', `flush chain ${table} leave`],
        ['the rules of the first chain', `flush chain ${table} arrive`],
        ['the whole table', `delete table ${table}`],
      ] as const) {
        it(`nothing of a worker leaves its gateway node: ${what}`, async () => {
          await assertNothingLeaves(() => network.gateway.nft(script));
        });
      }

      it('what a policy leaves alone, the cluster and the node itself are reached while the table is there', async () => {
        await network.workerTable.apply(
          tableOf({ ...worker, [`dst${family}`]: new Map([[`${CLASS} . ${at.outside}`, markText(LEAVE_ALONE)]]) }),
        );
        assert.ok(await network.ping(...old));
        assert.deepEqual(await network.sources(), [at.worker]);
        assert.ok(await network.ping(at.worker));
        await network.worker.nft(`delete table ${table}`);
        assert.ok(await network.ping(...old), 'a connection that was judged goes on');
        assert.deepEqual(await network.sources(), [at.worker]);
      });

      it('a pod without a policy notices nothing', async () => {
        await network.workerTable.apply(tableOf({ ...worker, pod4: new Map(), pod6: new Map() }));
        await network.worker.nft(`delete table ${table}`);
        assert.ok(await network.ping(at.outside));
      });

      it('a pod whose policy went away leaves as its node sends it', async () => {
        assert.ok(await network.ping(...old));
        await network.workerTable.apply(tableOf({ ...worker, [`pod${family}`]: new Map() }));
        await network.worker.must('conntrack', '-F');
        await network.sources();
        assert.ok(await network.ping(at.outside));
        assert.deepEqual(await network.sources(), [at.worker]);
      });

      it('a source that is known by its range is sealed too', async () => {
        const range = family === 4 ? '10.244.1.0/24' : 'fd44:1::/64';
        await network.workerTable.apply(
          tableOf({ ...worker, pod4: new Map(), pod6: new Map(), [`net${family}`]: new Map([[range, CLASS]]) }),
        );
        await assertNothingLeaves(() => network.worker.nft(`flush chain ${table} classify`));
      });
    });
  }

  it('the seal comes back when somebody deleted it, and is not there where there is nothing to seal', async () => {
    const isThere = async () => (await network.worker.programs.run(['nft', 'list', 'table', 'inet', SEAL])).code === 0;
    await network.worker.nft(`delete table inet ${SEAL}`);
    network.workerTable.distrust();
    await network.workerTable.apply(tableOf(worker));
    assert.ok(await isThere());
    await network.worker.nft(`delete table inet ${SEAL}`);
    await network.workerTable.apply(tableOf({ ...worker, pod4: new Map() }));
    assert.ok(await isThere(), 'also when only a change finds that it is gone');
    await network.workerTable.apply(tableOf({}));
    assert.equal(await isThere(), false);
    await network.workerTable.apply(tableOf(worker));
    await network.workerTable.remove();
    assert.equal(await isThere(), false);
  });
});
