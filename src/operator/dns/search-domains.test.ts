import assert from 'node:assert/strict';
import { test } from 'node:test';
import { searchDomainsIn } from './search-domains.ts';

test('the last search line of a resolv.conf counts', () => {
  const text = [
    '# search old.example.com',
    'search one.example.com',
    'nameserver 10.96.0.10',
    'search sallyport.svc.cluster.local svc.cluster.local Cluster.Local. ec2.internal',
    'options ndots:5',
  ].join('\n');
  assert.deepEqual(searchDomainsIn(text), [
    'sallyport.svc.cluster.local',
    'svc.cluster.local',
    'cluster.local',
    'ec2.internal',
  ]);
  assert.deepEqual(searchDomainsIn('search .\nnameserver 1.1.1.1\n'), []);
  assert.deepEqual(searchDomainsIn(''), []);
});
