import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../runtime/process/clock.ts';
import { createLog } from '../../runtime/process/log.ts';
import { Applier } from '../reconcile/applier.ts';
import { nothingToRestore } from '../reconcile/restore.ts';
import { createFakeNode, noGate } from '../testing/fake-node.ts';
import { gatewayNode } from '../testing/gateway-node.ts';
import { cleanNode } from './clean.ts';

const log = createLog({ process: 'test', level: 'silent' });

/** A gateway node with an EIP, as an agent leaves it behind. */
const usedNode = async () => {
  const { desired } = gatewayNode('web');
  const node = await createFakeNode(systemClock);
  const kernel = node.kernel();
  const hooks = { changed: () => {}, repaired: () => {}, cut: () => {}, forgetFailed: () => {}, replaced: () => {} };
  const applier = new Applier(kernel, hooks, nothingToRestore, noGate);
  const { problems } = await applier.apply(desired, async (wanted) =>
    (await applier.applyTable(wanted.table)) === undefined ? wanted : undefined,
  );
  assert.deepEqual(problems, []);
  kernel.announcer.close();
  const stateFolder = mkdtempSync(join(tmpdir(), 'sallyport-clean-'));
  writeFileSync(join(stateFolder, 'ready'), '');
  return { node, stateFolder };
};

test('cleaning takes everything off the node, and may be repeated', async () => {
  const { node, stateFolder } = await usedNode();
  assert.ok((await node.network.read()).links.length > 0);
  assert.equal(await cleanNode({ kernel: node.kernel(), stateFolder, log }), true);
  assert.equal(await node.kernel().nftables.read(), undefined);
  const { links, addresses, rules, routes, proxies } = await node.network.read();
  assert.deepEqual(
    { links, addresses, rules, routes, proxies },
    { links: [], addresses: [], rules: [], routes: [], proxies: [] },
  );
  assert.equal(node.sysctls.settings.get('net/ipv6/conf/eth0/proxy_ndp'), '0');
  assert.equal(existsSync(stateFolder), false);
  assert.equal(await cleanNode({ kernel: node.kernel(), stateFolder, log }), true);
});

test('what cannot be taken off is told, and everything else is', async () => {
  const { node, stateFolder } = await usedNode();
  node.sysctls.locked.add('net/ipv6/conf/eth0/proxy_ndp');
  node.nft.failure = { code: 1, stdout: '', stderr: 'Error: Operation not permitted' };
  assert.equal(await cleanNode({ kernel: node.kernel(), stateFolder, log }), false);
  assert.deepEqual((await node.network.read()).links, []);
  assert.equal(existsSync(stateFolder), true, 'the values from before are still known');
});
