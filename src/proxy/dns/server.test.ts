import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { ManualClock } from '../../runtime/process/clock.ts';
import { eventually } from '../../runtime/testing/eventually.ts';
import { httpRule, ruleSet, tcpRule } from '../testing/rules.ts';
import { decodeResponse, encodeQuery } from './message.ts';
import { framed } from './outside.ts';
import { GuardedResolver } from './resolver.ts';
import { serveDns } from './server.ts';
import { Zone } from './testing/zone.ts';

const host = '127.0.0.1';

const open = async () => {
  const zone = new Zone();
  const resolver = new GuardedResolver({ outside: zone, clock: new ManualClock() });
  resolver.set(ruleSet(tcpRule(5432, 'db.test', 5432), httpRule('*.shop.test')));
  const server = await serveDns(resolver, { host, port: 0 });
  // The platform's own resolver, which is c-ares as in Envoy.
  const client = new Resolver({ timeout: 60_000, tries: 1 });
  client.setServers([`${host}:${server.port}`]);
  return { zone, resolver, server, client, [Symbol.asyncDispose]: () => server.close() };
};

describe('the DNS server of engines', () => {
  it('answers c-ares in both families', async () => {
    await using bed = await open();
    bed.zone.entries.set('db.test', { addresses: ['203.0.113.1', '203.0.113.2', '2001:db8::1'] });
    assert.deepEqual((await bed.client.resolve4('DB.test')).toSorted(), ['203.0.113.1', '203.0.113.2']);
    assert.deepEqual(await bed.client.resolve6('db.test'), ['2001:db8::1']);
    assert.deepEqual(await bed.client.resolve4('db.test', { ttl: true }).then((all) => all[0]?.ttl), 60);
  });

  it('refuses names without a rule, tells what does not exist, and has no records of other types', async () => {
    await using bed = await open();
    bed.zone.entries.set('evil.test', { addresses: ['203.0.113.1'] });
    bed.zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    await assert.rejects(bed.client.resolve4('evil.test'), { code: 'EREFUSED' });
    await assert.rejects(bed.client.resolve4('none.shop.test'), { code: 'ENOTFOUND' });
    await assert.rejects(bed.client.resolveMx('db.test'), { code: 'ENODATA' });
    await assert.rejects(bed.client.resolvePtr('1.113.0.203.in-addr.arpa'), { code: 'EREFUSED' });
  });

  it('sends long answers over TCP', async () => {
    await using bed = await open();
    const addresses = Array.from({ length: 120 }, (_, index) => `203.0.113.${index + 1}`);
    bed.zone.entries.set('db.test', { addresses });
    assert.equal((await bed.client.resolve4('db.test')).length, 120);
  });

  it('answers several questions on one TCP connection, however they are cut', async () => {
    await using bed = await open();
    bed.zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    const socket = connect({ host, port: bed.server.port });
    const queries = [1, 2, 3].map((id) => framed(encodeQuery({ id, name: 'db.test', type: 'A' })));
    for (const byte of Buffer.concat(queries)) socket.write(Buffer.from([byte]));
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    const first = () => 2 + received.readUInt16BE(0);
    await eventually('three answers', () => received.length >= 2 && received.length === 3 * first());
    const ids = [0, 1, 2].map((index) => {
      const decoded = decodeResponse(received.subarray(2 + index * first(), (index + 1) * first()));
      return decoded.ok && decoded.value.id;
    });
    assert.deepEqual(ids.toSorted(), [1, 2, 3]);
    socket.destroy();
  });

  it('survives garbage on both protocols and counts it', async () => {
    await using bed = await open();
    const udp = createSocket('udp4');
    for (const garbage of ['', 'x', '\0'.repeat(11), 'y'.repeat(600)]) udp.send(garbage, bed.server.port, host);
    const tcp = connect({ host, port: bed.server.port });
    tcp.write(Buffer.from([0xff, 0xff, 1, 2, 3]));
    await once(tcp, 'close');
    await eventually('all are counted', () => (bed.resolver.refused.get('malformed') ?? 0) >= 5);
    udp.close();
    bed.zone.entries.set('db.test', { addresses: ['203.0.113.1'] });
    assert.deepEqual(await bed.client.resolve4('db.test'), ['203.0.113.1']);
  });

  it('says in one sentence that its port is taken', async () => {
    await using bed = await open();
    await assert.rejects(serveDns(bed.resolver, { host, port: bed.server.port }), {
      code: 'PORT_IN_USE',
      message: /^the guarding resolver cannot listen on 127\.0\.0\.1 port \d+: /,
    });
  });

  it('asks only for addresses outside, whatever the type of the question', async () => {
    await using bed = await open();
    await assert.rejects(bed.client.resolveTxt('x.shop.test'));
    assert.deepEqual([...bed.zone.asked.keys()], ['x.shop.test']);
  });
});
