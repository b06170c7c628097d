import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseIp, parseIpv6 } from '../ip/index.ts';
import { ip } from '../testing/address.ts';
import { isNodeGroupKey, nodeGroupKey, ownershipKey } from './node-group.ts';
import { decode, encode } from './wire.ts';

const name = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?$/);

describe('nodeGroupKey', () => {
  it('is an address of the discard-only block in canonical text, which goes through messages', () => {
    fc.assert(
      fc.property(name, name, (gateway, node) => {
        const key = nodeGroupKey({ gateway, node });
        assert.deepEqual(parseIp(key), { ok: true, value: key });
        assert.ok(isNodeGroupKey(key));
        const message = { kind: 'notice', sequence: 1, holdings: [{ eip: key, epoch: 2 }] } as const;
        assert.deepEqual(decode(encode(message)), message);
      }),
    );
  });

  it('stays what it is: kernels keep it over an upgrade of the agent', () => {
    assert.equal(nodeGroupKey({ gateway: 'main', node: 'gateway-1' }), '100::fec9:37ea:aeba:3cc0');
  });

  it('is another one for another gateway or node, and for the names the other way round', () => {
    const groups = ['a', 'b', 'c'].flatMap((gateway) => ['a', 'b', 'c'].map((node) => ({ gateway, node })));
    assert.equal(new Set(groups.map(nodeGroupKey)).size, groups.length);
  });

  it('is no EIP', () => {
    for (const text of ['10.6.0.1', 'fd06::1', '100::1', '100::1:2:3:4', '100:1::8000:2:3:4']) {
      assert.equal(isNodeGroupKey(ip(text)), false, text);
    }
  });
});

describe('ownershipKey', () => {
  const none = { ipv4: undefined, ipv6: undefined };
  const bound = { eip: none, gateway: 'g', node: 'a', slot: 1, epoch: 0 };

  it('is the EIP, else the group, else nothing', () => {
    const found = parseIpv6('fd06::1');
    assert.ok(found.ok);
    assert.equal(ownershipKey({ ...bound, eip: { ...none, ipv6: found.value } }), 'fd06::1');
    assert.equal(ownershipKey(bound), nodeGroupKey({ gateway: 'g', node: 'a' }));
    assert.equal(
      ownershipKey({ ...bound, gateway: undefined }),
      undefined,
      'an earlier controller recorded no gateway',
    );
    assert.equal(ownershipKey({ ...bound, node: undefined }), undefined);
  });
});
