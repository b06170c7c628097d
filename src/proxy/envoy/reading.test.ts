import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readingOf } from './reading.ts';

describe('readingOf', () => {
  it('finds the counts of each rule, also of one with dots in its name', () => {
    const stats = new Map([
      ['cluster.team/a.b/c.upstream_rq_active', 2],
      ['cluster.team/a.b/c.upstream_rq_total', 7],
      ['cluster.team/a.b/c.upstream_cx_tx_bytes_total', 100],
      ['cluster.team/a.b/c.upstream_cx_rx_bytes_total', 200],
      ['cluster.team/a.b/c.membership_total', 2],
      ['cluster.team/a.b/d.membership_total', 0],
      ['cluster_manager.active_clusters', 1],
    ]);
    const { rules, refused, resolved } = readingOf(stats, new Map([['malformed', 3]]));
    const reading = { actives: 2, connections: 7, bytesSent: 100, bytesReceived: 200 };
    assert.deepEqual([...rules], [['team/a.b/c', reading]]);
    assert.deepEqual([...refused], [['malformed', 3]]);
    assert.deepEqual([...(resolved ?? [])], ['team/a.b/c'], 'a destination without an address is not resolved');
  });

  it('counts silent clients, which leave no line, as slow', () => {
    const stats = new Map([['listener.rules.downstream_pre_cx_timeout', 2]]);
    assert.deepEqual([...readingOf(stats, new Map([['slow', 1]])).refused], [['slow', 3]]);
  });

  it('counts connections beyond the bound of a rule', () => {
    const stats = new Map([['connection_limit.rules.limited_connections', 4]]);
    assert.deepEqual([...readingOf(stats, new Map()).refused], [['too-many', 4]]);
  });
});
