/** Hosts that are not what they seem, and names that lead where nobody may go. */
import assert from 'node:assert/strict';
import { eventually } from '../../runtime/testing/eventually.ts';
import { inside, outside } from './bed.ts';
import { askOverTls, converse, openTunnel, proxyAddress, sendRaw } from './client.ts';
import type { Scenario } from './conformance.ts';
import { absolute } from './conformance-http.ts';
import { DATABASE, ports, scenario } from './minefield.ts';

const plain = (host: string) => () => sendRaw(ports.http, absolute(host));
const origin = (host: string) => () =>
  sendRaw(ports.http, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
const tunnel = (authority: string) => async () => {
  const { answer, socket } = await openTunnel(ports.http, authority);
  socket.destroy();
  return answer;
};

/** All ways in which a client names a host. */
const ways = (host: string) =>
  [
    [`URL of ${host}`, plain(host)],
    [`Host ${host}`, origin(host)],
    [`CONNECT to ${host}`, tunnel(`${host}:443`)],
  ] as const;

/** Other spellings of addresses: decimal, hexadecimal, octal, short, mapped, translated. */
const spellings = [
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '127.1',
  '0',
  'localhost',
  '[::]',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:10.96.0.5]',
  '[64:ff9b::a60:5]',
  '[2002:a60:5::]',
  '[fe80::1%25lo]',
];

/** Hosts that end like an allowed one, or begin like one, to one of two readers. */
const disguised = [
  'forbidden.test%2f.wild.test',
  'forbidden.test%00.wild.test',
  'forbidden.test\\.wild.test',
  'forbidden.test:80.wild.test',
  'allowed.test@forbidden.test',
  'allowed.test:80@forbidden.test',
  'forbidden.test,allowed.test',
  '%66orbidden.test',
  '%61llowed.test',
  'allowed.test%20',
  'allowed.test.forbidden.test',
  'notallowed.test',
  'allowed。test',
  'xn--llowed-4ve.test',
  '..wild.test',
  '.wild.test',
  'wild.test',
];

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

export const nameScenarios: readonly Scenario[] = [
  scenario('security-addresses', 'refuses addresses that no rule names, in every spelling', async (field) => {
    const hosts = [...[...inside, outside.two, '127.0.0.1', proxyAddress].map(bracketed), ...spellings];
    for (const host of hosts) for (const [what, send] of ways(host)) await field.refuses(what, send);
  }),
  scenario('security-disguised', 'refuses hosts that only look allowed', async (field) => {
    for (const host of disguised) for (const [what, send] of ways(host)) await field.refuses(what, send);
  }),
  scenario(
    'security-equivalent',
    'refuses an allowed host in another spelling, or reaches it and nothing else',
    async (field) => {
      for (const host of [
        'allowed.test.',
        'ALLOWED.test',
        'x.WILD.test',
        'user@allowed.test',
        'forbidden.test:80@x.wild.test',
      ]) {
        await field.refusesOrCleans(`URL of ${host}`, plain(host));
      }
    },
  ),
  scenario('security-forbidden-answers', 'reaches no address that a name may not lead to', async (field, bed) => {
    for (const address of [...inside, proxyAddress, '127.0.0.1', '::1', '::ffff:10.96.0.5']) {
      const host = `a${address.replaceAll(/[.:]/g, '-')}.wild.test`;
      bed.dns.set(host, { addresses: [address] });
      for (const [what, send] of ways(host)) await field.refuses(`${what}, which is ${address}`, send);
      await field.refuses(`server name ${host}`, () => askOverTls(ports.tls, host, bed.ca));
    }
    bed.dns.set('alias.wild.test', { addresses: ['10.96.0.5'], alias: 'allowed.test' });
    for (const [what, send] of ways('alias.wild.test')) await field.refuses(what, send);
    assert.ok((bed.guard.refused.get('address-forbidden') ?? 0) > 0);
  }),
  scenario('security-mixed-answers', 'takes only the good ones of several addresses', async (field, bed) => {
    bed.dns.set('mixed.wild.test', { addresses: ['10.96.0.5', outside.one, '169.254.169.254', 'fd12::5'] });
    for (let index = 0; index < 10; index += 1) {
      assert.equal((await plain('mixed.wild.test')())?.status, 200);
    }
    field.assertUntouched('a name with mixed answers');
  }),
  scenario('security-rebinding', 'stays away when a name changes its mind between two look-ups', async (field, bed) => {
    for (const name of ['allowed.test', 'rebound.wild.test', 'db.wild.test']) {
      let turn = 0;
      bed.dns.set(name, () => {
        turn += 1;
        return { addresses: [turn % 2 === 0 ? '10.96.0.5' : outside.one], ttlSeconds: 0 };
      });
    }
    const queriesBefore = bed.dns.queries('db.wild.test');
    // Until every name was looked up again, with both answers, requests go on.
    await eventually(
      'the names were looked up again and again',
      async () => {
        await plain('allowed.test')();
        await plain('rebound.wild.test')();
        await tunnel('rebound.wild.test:443')();
        await converse(DATABASE).then(
          (conversation) => conversation[Symbol.dispose](),
          () => {},
        );
        field.assertUntouched('a name that changes its mind');
        return bed.dns.queries('db.wild.test') >= queriesBefore + 6;
      },
      30_000,
    );
  }),
  scenario('security-loop', 'does not lead back to itself', async (field, bed) => {
    bed.dns.set('loop.wild.test', { addresses: [proxyAddress] });
    for (const host of [proxyAddress, '127.0.0.1', 'loop.wild.test']) {
      for (const port of [61000, 61001, 61053, 61080, 61443]) {
        await field.refuses(`CONNECT ${host}:${port}`, tunnel(`${host}:${port}`));
        await field.refuses(`URL of ${host}:${port}`, plain(`${host}:${port}`));
      }
    }
  }),
];
