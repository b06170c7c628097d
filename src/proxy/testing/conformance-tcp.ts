/** Scenarios of TCP rules: where connections go, how they are spread, and when they end. */
import assert from 'node:assert/strict';
import { eventually } from '../../runtime/testing/eventually.ts';
import { clients, outside } from './bed.ts';
import { type Conversation, converse } from './client.ts';
import type { Scenario } from './conformance.ts';
import { openTcpServer } from './outside.ts';
import { ruleSet, tcpRule } from './rules.ts';

const PORT = 5000;
const LISTEN = 4100;

/** Opens connections one after the other and tells to which server each went. */
const serversOf = async (count: number, from?: string): Promise<string[]> => {
  const servers: string[] = [];
  for (let index = 0; index < count; index += 1) {
    using conversation = await converse(LISTEN, from);
    servers.push(conversation.server);
  }
  return servers;
};

/** How often each value is there. */
const tally = (values: readonly string[]): Map<string, number> =>
  new Map([...new Set(values)].map((value) => [value, values.filter((other) => other === value).length]));

export const tcpScenarios: readonly Scenario[] = [
  {
    name: 'tcp-roundrobin',
    title: 'spreads connections over the addresses in turn, IPv4 and IPv6',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      await using two = await openTcpServer(outside.two, PORT);
      await using six = await openTcpServer(outside.six, PORT);
      const { problems } = await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one, outside.two, outside.six], PORT)));
      assert.deepEqual([...problems], []);
      const servers = await serversOf(30);
      // Workers count their turns on their own, so the shares are near a third and not exact.
      assert.equal(tally(servers).size, 3);
      for (const { connections } of [one, two, six]) assert.ok(connections >= 5, `${servers}`);
    },
  },
  {
    name: 'tcp-least-conn',
    title: 'gives a connection to the address with the fewest',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      await using two = await openTcpServer(outside.two, PORT);
      const rule = tcpRule(LISTEN, [outside.one, outside.two], PORT, { algorithm: 'least_conn' });
      await bed.serve(ruleSet(rule));
      using kept = new DisposableStack();
      // One after the other: those that come at once cannot know of each other.
      const open: Conversation[] = [];
      for (let index = 0; index < 8; index += 1) open.push(kept.use(await converse(LISTEN)));
      assert.deepEqual([one.open, two.open], [4, 4]);
      for (const conversation of open) if (conversation.server === one.at) conversation[Symbol.dispose]();
      await eventually(
        'half of them have ended',
        async () => (await bed.engine.read()).rules.get(rule.id)?.actives === 4,
      );
      for (let index = 0; index < 4; index += 1) assert.equal(kept.use(await converse(LISTEN)).server, one.at);
    },
  },
  {
    name: 'tcp-hash',
    title: 'keeps a client at one address and uses all for many clients',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      await using two = await openTcpServer(outside.two, PORT);
      await using three = await openTcpServer(outside.three, PORT);
      await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one, outside.two, outside.three], PORT, { algorithm: 'hash' })));
      for (const client of clients) {
        const servers = await serversOf(3, client);
        assert.equal(tally(servers).size, 1, `${client}: ${servers}`);
      }
      assert.ok([one, two, three].filter(({ connections }) => connections > 0).length >= 2);
    },
  },
  ...(['roundrobin', 'least_conn', 'hash'] as const).map(
    (algorithm): Scenario => ({
      name: `tcp-dead-${algorithm}`,
      title: `skips a dead address: ${algorithm}`,
      async run(bed) {
        await using two = await openTcpServer(outside.two, PORT);
        await using three = await openTcpServer(outside.three, PORT);
        // Nobody listens at the first one.
        await bed.serve(ruleSet(tcpRule(LISTEN, [outside.one, outside.two, outside.three], PORT, { algorithm })));
        for (const client of clients) await serversOf(3, client);
        assert.equal(two.connections + three.connections, clients.length * 3);
      },
    }),
  ),
  {
    name: 'tcp-domain',
    title: 'follows a name to a new address within its TTL, and keeps the connections to the old one',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      await using two = await openTcpServer(outside.two, PORT);
      bed.dns.set('db.outside.test', { addresses: [outside.one], ttlSeconds: 1 });
      await bed.serve(ruleSet(tcpRule(LISTEN, 'db.outside.test', PORT)));
      using old = await converse(LISTEN);
      assert.equal(old.server, one.at);
      bed.dns.set('db.outside.test', { addresses: [outside.two], ttlSeconds: 1 });
      await eventually('the new address is used', async () => (await serversOf(1))[0] === two.at, 5_000);
      assert.deepEqual(tally(await serversOf(10)), new Map([[two.at, 10]]));
      await old.echo('still here');
    },
  },
  {
    name: 'tcp-domain-unresolved',
    title: 'serves other rules while a name does not resolve, and the rule as soon as it does',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      bed.dns.set('late.outside.test', undefined);
      const { problems } = await bed.serve(
        ruleSet(tcpRule(LISTEN, [outside.one], PORT), tcpRule(LISTEN + 1, 'late.outside.test', PORT)),
      );
      assert.deepEqual([...problems], []);
      assert.deepEqual(await serversOf(1), [one.at]);
      await assert.rejects(converse(LISTEN + 1));
      bed.dns.set('late.outside.test', { addresses: [outside.one], ttlSeconds: 1 });
      await eventually('the rule with the late name works', () =>
        converse(LISTEN + 1).then(
          (conversation) => {
            conversation[Symbol.dispose]();
            return true;
          },
          () => false,
        ),
      );
    },
  },
  {
    name: 'tcp-idle',
    title: 'ends a silent connection after the idle time of its rule, and no other',
    async run(bed) {
      await using _one = await openTcpServer(outside.one, PORT);
      await bed.serve(
        ruleSet(
          tcpRule(LISTEN, [outside.one], PORT, { idleSeconds: 1 }),
          tcpRule(LISTEN + 1, [outside.one], PORT, { idleSeconds: 3600 }),
        ),
      );
      using short = await converse(LISTEN);
      using long = await converse(LISTEN + 1);
      await short.broken;
      await long.echo('still here');
    },
  },
  {
    name: 'tcp-counts',
    title: 'counts open connections, all connections and bytes of each rule, and logs each connection',
    async run(bed) {
      await using one = await openTcpServer(outside.one, PORT);
      // Ports of their own: connections of other scenarios may be logged late.
      const rule = tcpRule(LISTEN + 50, [outside.one], PORT);
      const other = tcpRule(LISTEN + 51, [outside.one], PORT);
      await bed.serve(ruleSet(rule, other));
      const before = (await bed.engine.read()).rules.get(rule.id);
      using conversations = await manyConversations(5, LISTEN + 50);
      const text = 'x'.repeat(10_000);
      for (const conversation of conversations.list) await conversation.echo(text);
      await eventually('five are open', async () => (await bed.engine.read()).rules.get(rule.id)?.actives === 5);
      assert.equal((await bed.engine.read()).rules.get(other.id)?.actives ?? 0, 0);
      conversations[Symbol.dispose]();
      await eventually('none is open', async () => (await bed.engine.read()).rules.get(rule.id)?.actives === 0);
      await eventually('all are counted', async () => {
        const now = (await bed.engine.read()).rules.get(rule.id);
        const grown = (field: 'connections' | 'bytesSent' | 'bytesReceived'): number =>
          (now?.[field] ?? 0) - (before?.[field] ?? 0);
        return grown('connections') === 5 && grown('bytesSent') === 50_000 && grown('bytesReceived') >= 50_000;
      });
      const line = await bed.line('a connection of the rule', ({ rule: id }) => id === rule.id);
      assert.equal(line.kind, 'tcp');
      assert.equal(line.upstream, one.at);
      assert.equal(line.refused, '');
    },
  },
];

interface Conversations extends Disposable {
  readonly list: readonly Conversation[];
}

const manyConversations = async (count: number, port = LISTEN): Promise<Conversations> => {
  const list = await Promise.all(Array.from({ length: count }, () => converse(port)));
  return {
    list,
    [Symbol.dispose]() {
      for (const conversation of list) conversation[Symbol.dispose]();
    },
  };
};
