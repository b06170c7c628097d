import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readInfoSpec } from './spec.ts';

const autoDetect = { podCidrMode: 'auto', clusterIP: true, nodeIP: true };

describe('readInfoSpec', () => {
  it('fills in what is absent', () => {
    assert.deepEqual(readInfoSpec(undefined), { spec: { autoDetect }, faults: [] });
  });

  it('leaves out entries that cannot be read, and names them', () => {
    const { spec, faults } = readInfoSpec({ extraCidr: ['10.0.0.0/8', 'office', '192.168.1.1'] });
    assert.deepEqual(spec, { autoDetect, extraCidr: ['10.0.0.0/8', '192.168.1.1'] });
    assert.equal(faults.length, 1);
    assert.match(faults[0] ?? '', /^extraCidr\[1\] is "office"/);
  });

  it('gives no spec when the rest cannot be read', () => {
    for (const given of [{ autoDetect: { podCidrMode: 'flannel' } }, { extraCidr: 'office' }, 'text', null]) {
      const { spec, faults } = readInfoSpec(given);
      assert.equal(spec, undefined, JSON.stringify(given));
      assert.ok(faults.length > 0);
    }
  });
});
