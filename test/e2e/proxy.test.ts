/** The egress proxy as people use it: the examples of its first design, the how-to page, rules that change, rules that fail. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { addresses, ports } from '../../lab/cluster/shape.ts';
import { until } from '../../lab/host/wait.ts';
import type { BCSEgressStatus } from '../../src/api/bcs-egress.ts';
import { outsideServer, ProxyWorld } from './proxy-world.ts';
import { tellOfLab } from './witness.ts';

const root = join(import.meta.dirname, '..', '..');

/** The objects of the YAML blocks of a page, in order. */
const manifestsOf = (page: string): readonly object[] =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/```yaml\n(.*?)```/gs)].flatMap(([, text = '']) =>
    parseAllDocuments(text).map((document) => document.toJS() as object),
  );
const seedExample = (name: string): { metadata: object } =>
  parseAllDocuments(readFileSync(join(root, 'test/fixtures/api/valid', name), 'utf8'))[0]?.toJS();

const ruleOf = (status: BCSEgressStatus, name: string) => status.rules?.find((rule) => rule.name === name);
const states = (status: BCSEgressStatus) =>
  Object.fromEntries((status.rules ?? []).map(({ name, state }) => [name, state]));

describe('the egress proxy', () => {
  let world: ProxyWorld;
  tellOfLab('e2e-proxy');
  before(async () => {
    world = await ProxyWorld.start('e2e-proxy');
    world.names({
      'gamedb.proxy.tencent.com': outsideServer,
      'wechatpay.api.com': outsideServer,
      'api.example.com': outsideServer,
      'db.example.com': outsideServer,
      'www.example.org': outsideServer,
    });
    for (const node of ['worker-1', 'worker-2']) await world.lab.kubectl(['label', 'node', node, 'node=some-nodes']);
    await world.clients(
      { name: 'game', namespace: 'hn1', node: 'worker-1' },
      { name: 'shop-1', namespace: 'shop', node: 'worker-1' },
      { name: 'shop-2', namespace: 'shop', node: 'worker-2' },
    );
  });
  after(() => world?.stop());

  const nodeAddresses = () => new Set(world.lab.status.nodes.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]));

  describe('the examples of the first design', () => {
    test('a BCSEgress makes its proxy, is Synced, and is served by name and by HTTP_PROXY', async () => {
      const example = seedExample('bcs-egress-seed.yaml');
      await world.apply({ ...example, metadata: { name: 'hn1-egress', namespace: 'hn1' } });
      const status = await world.untilState('hn1/hn1-egress', 'Synced', 120_000);
      assert.match(status.syncedAt ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
      assert.deepEqual(states(status), { 'tcp-8080': 'Synced', 'https-wechatpay-api-com': 'Synced' });
      assert.deepEqual((await world.controllerStatus('egress-controller')).references, [
        { namespace: 'hn1', name: 'hn1-egress' },
      ]);

      const game = await world.fetch('game', 'http://gamedb.proxy.tencent.com:8080/');
      assert.ok(nodeAddresses().has(game.address), `the outside saw ${game.address}`);
      const proxy = ['--proxy', 'http://egress-controller.bcs-system:3128'];
      const pay = await world.fetch('game', ...proxy, 'https://wechatpay.api.com/pay');
      assert.deepEqual([pay.host, pay.sni, pay.path], ['wechatpay.api.com', 'wechatpay.api.com', '/pay']);
      assert.ok(nodeAddresses().has(pay.address), `the outside saw ${pay.address}`);

      const refused = await world.curl('game', ...proxy, 'http://other.outside.test/');
      assert.equal(refused.status, 403);
      assert.match(refused.body, /bcs-system\/egress-controller/);
      assert.equal((await world.curl('game', ...proxy, 'https://other.outside.test/')).status, 403);
      const unchanged = await world.status('hn1/hn1-egress');
      assert.equal(unchanged.syncedAt, status.syncedAt, 'syncedAt changes only when something changed');
    });

    test('a BCSEgressController decides on nodes, image and size of its proxy', async () => {
      const example = seedExample('bcs-egress-controller-seed.yaml');
      world.alias('example.com/public/bcs-egress-controller', 'envoy');
      await world.apply({ ...example, metadata: { name: 'hn1-egress', namespace: 'bcs-system' } });
      const rules = { tcp: [{ sourceport: 3306, destport: ports.database, ips: 'gamedb.proxy.tencent.com' }] };
      // The name belongs to the first object; the port and the Service do not.
      const own = { tcp: [{ name: 'db', sourceport: 3306, destport: ports.database, ips: addresses.outside.ipv4 }] };
      await world.egress('hn1/second', { controller: { name: 'hn1-egress' }, rules: own });
      await world.untilState('hn1/second', 'Synced', 120_000);
      const pods = await until({ what: 'two replicas', limitMs: 60_000 }, async () => {
        const ready = await world.proxyPods('hn1-egress');
        return ready.length === 2 ? ready : undefined;
      });
      assert.deepEqual(new Set(pods.map(({ node }) => node)), new Set(['worker-1', 'worker-2']));
      const get = async (kind: string, path: string) =>
        world.lab.kubectl(['-n', 'bcs-system', 'get', kind, 'hn1-egress', '-o', `jsonpath=${path}`]);
      assert.equal(
        await get('deployment', '{.spec.template.spec.containers[0].image}'),
        'example.com/public/bcs-egress-controller:1.18.1-alpha',
      );
      assert.equal(await get('deployment', '{.spec.template.spec.containers[0].resources.requests.memory}'), '4Gi');
      assert.equal(await get('hpa', '{.spec.minReplicas} {.spec.maxReplicas}'), '2 10');
      assert.equal(await get('hpa', '{.spec.metrics[*].resource.target.averageUtilization}'), '60 60');
      const answer = await world.source('game', 'second-db.hn1', 3306);
      assert.ok(nodeAddresses().has(answer), answer);
      // The same name through another proxy is refused: it belongs to the first object.
      const refused = await world.refusal('hn1/second', { controller: { name: 'hn1-egress' }, rules });
      assert.match(refused, /gamedb\.proxy\.tencent\.com.*hn1\/hn1-egress/);
      await world.deleteEgress('hn1/second');
      await world.lab.kubectl(['-n', 'bcs-system', 'delete', 'bcsegresscontroller', 'hn1-egress', '--timeout=180s']);
    });
  });

  describe('the how-to page', () => {
    const [egress, , pod, gateway, policy, payments] = manifestsOf('docs/how-to/egress-proxy.md');

    test('hosts and ports are reached as it says', async () => {
      assert.ok(egress !== undefined && pod !== undefined);
      await world.apply(egress, pod);
      await world.untilState('shop/shop', 'Synced', 120_000);
      await world.lab.kubectl(['-n', 'shop', 'wait', '--for=condition=Ready', 'pod/orders', '--timeout=180s']);
      // Without any answer it is asked again, as in world.fetch.
      const curl = (...args: readonly string[]) =>
        until({ what: `an answer to ${args.at(-1)}`, limitMs: 30_000 }, async () => {
          const said = await world.lab.tryKubectl(['-n', 'shop', 'exec', 'orders', '--', ...args]);
          if (said.stdout === '') throw new Error(said.stderr);
          return said;
        });
      const authority = ['curl', '-sS', '--cacert', world.lab.outsideAuthority];
      const api = await curl(...authority, 'https://api.example.com/');
      assert.match(api.stdout, /"sni":"api.example.com"/, api.stderr);
      const plain = await curl(...authority, 'http://www.example.org/');
      assert.match(plain.stdout, /"host":"www.example.org"/, plain.stderr);
      const other = await curl(...authority, 'http://www.example.net/');
      assert.match(other.stdout, /bcs-system\/egress-controller/, other.stderr);
      for (const host of ['db.example.com', 'shop-db.shop']) {
        const seen = await world.source('shop-1', host, 5432);
        assert.ok(nodeAddresses().has(seen), `${host}: ${seen}`);
      }
    });

    test('every request is a line of the log, let through or refused, and is counted', async () => {
      const selector = ['-l', 'bkbcs.tencent.com/controller=egress-controller'];
      const wanted = [
        /"rule":"shop\/shop\/https-api-example-com"/,
        /"rule":"shop\/shop\/db"/,
        /"refused":"not-allowed"/,
      ];
      await until({ what: 'the lines of three requests', limitMs: 20_000 }, async () => {
        const log = await world.lab.kubectl(['-n', 'bcs-system', 'logs', ...selector, '--tail=-1']);
        return wanted.every((line) => line.test(log));
      });
      const pods = await world.proxyPods('egress-controller');
      const counted = [
        /sallyport_proxy_rule_connections_total\{rule="shop\/shop\/db"\} [1-9]/,
        /sallyport_proxy_refused_total\{word="not-allowed"\} [1-9]/,
      ];
      const reader = ['-n', 'sallyport', 'create', 'token', 'sallyport-reader', '--audience=sallyport'];
      const token = (await world.lab.kubectl(reader)).trim();
      const [ip] = pods[0]?.ips ?? [];
      for (const page of ['metrics', 'report']) {
        const unknown = await world.lab.exec('worker-1', ['curl', '-sS', `http://${ip}:61000/${page}`]);
        assert.match(unknown, /show a token/, `${page} is for nobody without a token`);
      }
      // The engine is asked what it counts every two seconds.
      await until({ what: 'the counts of the same requests', limitMs: 20_000 }, async () => {
        const shown = `Authorization: Bearer ${token}`;
        const pages = pods.map(({ ips: [own] }) =>
          world.lab.exec('worker-1', ['curl', '-sS', '-H', shown, `http://${own}:61000/metrics`]),
        );
        const text = (await Promise.all(pages)).join('\n');
        return counted.every((line) => line.test(text));
      });
    });

    test('the proxy has a fixed source address when a policy gives it one', async () => {
      assert.ok(gateway !== undefined && policy !== undefined);
      await world.apply(gateway, policy);
      const question = { transport: 'tcp', host: 'shop-db.shop', port: 5432, limitMs: 5_000 } as const;
      let seen: readonly string[] = [];
      const explain = () => `last seen: ${seen.join(', ')}`;
      // Replicas are asked in turn, and the name has addresses of both families.
      await until({ what: 'the outside to see the EIP alone', limitMs: 60_000, explain }, async () => {
        seen = (await world.client('shop-1').askAll(Array.from({ length: 12 }, () => question))).map((answer) =>
          'failure' in answer ? answer.failure : answer.address,
        );
        return seen.every((address) => address === '10.77.0.100' || address === 'fd77::100');
      });
      const proxy = ['--proxy', 'http://egress-controller.bcs-system:3128'];
      const { address } = await world.fetch('shop-1', ...proxy, 'https://api.example.com/');
      assert.ok(address === '10.77.0.100' || address === 'fd77::100', address);
      await world.lab.kubectl(['-n', 'bcs-system', 'delete', 'egresspolicy', 'egress-controller']);
    });

    test('a proxy of its own serves the namespaces that its administrator names, and what they may have', async () => {
      assert.ok(payments !== undefined);
      await world.apply(payments);
      const through = (sourceport: number) => ({
        controller: { name: 'payments' },
        rules: { tcp: [{ name: 'pay', sourceport, destport: ports.database, domain: 'pay.example.com' }] },
      });
      assert.match(await world.refusal('hn1/pay', through(9000)), /bcs-system\/payments does not let/);
      assert.match(await world.refusal('shop/pay', through(8999)), /bcs-system\/payments does not let.*8999/);
      world.names({ 'pay.example.com': outsideServer });
      await world.egress('shop/pay', through(9000));
      await world.untilState('shop/pay', 'Synced', 90_000);
      await world.deleteEgress('shop/pay');
    });
  });

  for (const engine of ['envoy', 'nginx'] as const) {
    describe(`rules that change and rules that fail, ${engine}`, () => {
      const controller = `rules-${engine}`;
      const key = `shop/${engine}`;
      const base = engine === 'envoy' ? 7000 : 7100;
      const steady = { name: 'steady', sourceport: base, destport: ports.database, ips: addresses.outside.ipv4 };
      const spec = (...tcp: readonly object[]) => ({ controller: { name: controller }, rules: { tcp } });

      test('200 connections of a rule stream on while other rules come, change and go', async () => {
        await world.controller(controller, { engine });
        await world.egress(key, spec(steady));
        await world.untilState(key, 'Synced', 120_000);
        const question = { transport: 'tcp', host: `${engine}-steady.shop`, port: base, limitMs: 5_000 } as const;
        // Once alone: that kube-proxy has heard of the Service is not what is asked here.
        await world.source('shop-2', question.host, base);
        const stream = await world.client('shop-2').stream(question, { everyMs: 250, isKept: true, connections: 200 });
        try {
          const actives = (status: BCSEgressStatus) => ruleOf(status, 'steady')?.actives === 200;
          await world.untilStatus(key, 'show 200 open connections', actives);
          for (let round = 0; round < 3; round += 1) {
            const other = { sourceport: base + 1 + round, destport: ports.tcp, ips: addresses.outside.ipv4 };
            await world.egress(key, spec(steady, { name: 'other', ...other }));
            await world.untilState(key, 'Synced');
            await world.egress(key, spec(steady, { name: 'other', ...other, destport: ports.database }));
            await world.untilState(key, 'Synced');
            await world.egress(key, spec(steady));
            await world.untilState(key, 'Synced');
          }
        } finally {
          const { failures, reopened, asked, answers } = await stream.stop();
          assert.deepEqual({ failures, reopened }, { failures: {}, reopened: 0 });
          const answered = Object.values(answers).reduce((sum, count) => sum + count, 0);
          // Questions that arrive together are answered once.
          assert.ok(answered > asked / 2, `${answered} answers to ${asked} questions`);
        }
      });

      test('names that the DNS of the cluster leads to the proxy need no settings, and are given back', async () => {
        const [tls, plain] = [`tls-${engine}.example.net`, `plain-${engine}.example.net`];
        world.names({ [tls]: outsideServer, [plain]: outsideServer });
        const http = [
          { host: tls, tls: true, transparent: true },
          { host: plain, transparent: true },
        ];
        await world.egress(`shop/${engine}-names`, { controller: { name: controller }, rules: { http } });
        await world.untilState(`shop/${engine}-names`, 'Synced', 90_000);
        const secure = await world.fetch('shop-1', `https://${tls}/a`);
        assert.deepEqual([secure.sni, secure.path, nodeAddresses().has(secure.address)], [tls, '/a', true]);
        const open = await world.fetch('shop-1', `http://${plain}/b`);
        assert.deepEqual([open.host, open.path, nodeAddresses().has(open.address)], [plain, '/b', true]);
        await world.deleteEgress(`shop/${engine}-names`);
        let seen = '';
        const given = { what: `${tls} to be an outside name again`, limitMs: 60_000, explain: () => seen };
        await until(given, async () => {
          seen = (await world.inPod('shop-1', 'getent', 'ahostsv4', tls)).stdout;
          return seen.includes(addresses.outside.ipv4);
        });
      });

      test('a conflict, a name without address, a forbidden one and a held port are told by rule; others serve', async () => {
        await world.egress(`shop/${engine}-older`, {
          controller: { name: controller },
          rules: { tcp: [{ name: 'mine', sourceport: base + 20, destport: ports.tcp, ips: addresses.outside.ipv4 }] },
        });
        await world.untilState(`shop/${engine}-older`, 'Synced');
        world.names({ [`inside-${engine}.example.com`]: ['169.254.169.254', '127.0.0.1', '10.244.1.1'] });
        const [pod] = await world.proxyPods(controller);
        assert.ok(pod !== undefined);
        const hold = `require('net').createServer().listen(${base + 30}, '::')`;
        const holder = ['-n', 'bcs-system', 'exec', pod.name, '--', 'sh', '-c'];
        await world.lab.kubectl([...holder, `${process.execPath} -e "${hold}" </dev/null >/dev/null 2>&1 &`]);
        const to = { destport: ports.database, ips: addresses.outside.ipv4 };
        await world.egress(
          key,
          spec(
            steady,
            { name: 'unknown', sourceport: base + 21, destport: 1, domain: `nowhere-${engine}.example.com` },
            { name: 'inside', sourceport: base + 22, destport: 80, domain: `inside-${engine}.example.com` },
            { name: 'held', sourceport: base + 30, ...to },
          ),
        );
        const wanted = { steady: 'Synced', unknown: 'Error', inside: 'Error', held: 'Error' };
        const isWanted = (status: BCSEgressStatus) => JSON.stringify(states(status)) === JSON.stringify(wanted);
        const status = await world.untilStatus(key, 'tell the three', isWanted);
        assert.match(ruleOf(status, 'unknown')?.reason ?? '', /^NameNotResolved: .*nowhere/);
        assert.match(ruleOf(status, 'inside')?.reason ?? '', /^AddressForbidden: .*169\.254\.169\.254/);
        assert.match(ruleOf(status, 'held')?.reason ?? '', /^ListenPortTaken: /);
        assert.equal(status.state, 'Error');
        assert.ok(nodeAddresses().has(await world.source('shop-1', `${engine}-steady.shop`, base)));
        // The loser of a conflict is refused at once by admission, which names the winner.
        const taken = await world.refusal(`shop/${engine}-late`, spec({ name: 'mine', sourceport: base + 20, ...to }));
        assert.match(taken, new RegExp(`shop/${engine}-older`));
        // The name gets an address: the rule heals by itself.
        world.names({ [`nowhere-${engine}.example.com`]: [addresses.outside.ipv4] });
        await world.untilStatus(key, 'serve the name', (healed) => ruleOf(healed, 'unknown')?.state === 'Synced');
        await world.deleteEgress(`shop/${engine}-older`);
        await world.deleteEgress(key);
      });
    });
  }
});
