import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ip } from '../../core/ip/index.ts';
import { ip } from '../../core/testing/address.ts';
import type { AccessLine } from '../engine/access-line.ts';
import { httpRule, tcpRule } from '../testing/rules.ts';
import { Counts } from './counts.ts';
import { endpointText, type SocketRow } from './sockets.ts';

const line = (fields: Partial<AccessLine>): AccessLine => ({
  time: '2026-11-15T13:00:00.000Z',
  kind: 'tcp',
  rule: '',
  client: '10.244.1.1:1',
  host: '',
  upstream: '',
  method: '',
  status: 0,
  bytesSent: 0,
  bytesReceived: 0,
  ms: 1,
  refused: '',
  detail: '',
  ...fields,
});
const established = (localPort: number, remote: string): SocketRow => ({
  localPort,
  remote,
  state: 'established',
  inode: '1',
});

const tcp = tcpRule(4100, ['203.0.113.1'], 5432);
const first = httpRule('a.test');
const second = httpRule('b.test', { isTls: true });
const addressesOf = (): Ip[] => [ip('203.0.113.9')];

describe('Counts', () => {
  it('counts what is open on the port of a TCP rule and towards the addresses of a host', () => {
    const sockets = [
      established(4100, '0101F40A:9C40'),
      established(4100, '0101F40A:9C41'),
      { ...established(4100, '0101F40A:9C42'), state: 'other' } as const,
      { ...established(4100, '00000000:0000'), state: 'listen' } as const,
      established(50001, endpointText(ip('203.0.113.9'), 80)),
      established(50002, endpointText(ip('203.0.113.9'), 443)),
      established(50003, endpointText(ip('203.0.113.9'), 443)),
      established(50004, endpointText(ip('203.0.113.8'), 443)),
    ];
    const { rules } = new Counts().reading([tcp, first, second], sockets, addressesOf);
    assert.deepEqual(
      [tcp, first, second].map(({ id }) => rules.get(id)?.actives),
      [2, 1, 2],
    );
  });

  it('adds up what has ended, by rule, and refusals by word', () => {
    const counts = new Counts();
    counts.add(line({ rule: tcp.id, bytesSent: 10, bytesReceived: 20 }));
    counts.add(line({ rule: tcp.id, bytesSent: 1, bytesReceived: 2 }));
    counts.add(line({ rule: first.id, refused: 'unreachable' }));
    counts.add(line({ refused: 'not-allowed' }));
    const { rules, refused } = counts.reading([tcp], [], addressesOf);
    assert.deepEqual(rules.get(tcp.id), { actives: 0, connections: 2, bytesSent: 11, bytesReceived: 22 });
    assert.equal(rules.get(first.id)?.connections, 1);
    assert.deepEqual(
      refused,
      new Map([
        ['unreachable', 1],
        ['not-allowed', 1],
      ]),
    );
  });

  it('never counts back while a connection is between the kernel and the log', () => {
    const counts = new Counts();
    const connections = (sockets: readonly SocketRow[]) =>
      counts.reading([tcp], sockets, addressesOf).rules.get(tcp.id)?.connections;
    assert.equal(connections([established(4100, '0101F40A:9C40')]), 1);
    assert.equal(connections([]), 1);
    counts.add(line({ rule: tcp.id }));
    assert.equal(connections([]), 1);
  });

  it('forgets a rule that is gone, and counts it anew when it comes back', () => {
    const counts = new Counts();
    counts.ended(tcp.id, 1, 2);
    counts.ended(first.id, 1, 2);
    counts.forget(tcp.id);
    assert.deepEqual([...counts.reading([first], [], addressesOf).rules.keys()], [first.id]);
    counts.ended(tcp.id, 3, 4);
    assert.deepEqual(counts.reading([tcp], [], addressesOf).rules.get(tcp.id), {
      actives: 0,
      connections: 1,
      bytesSent: 3,
      bytesReceived: 4,
    });
  });
});
