import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conditionsOf } from './conditions.ts';

const at = (text: string) => new Date(text);
const valid = { reason: 'Valid', sentence: 'All is well.' } as const;
const missing = { reason: 'GatewayNotFound', sentence: 'There is no gateway.' } as const;

describe('conditionsOf', () => {
  it('takes the status from the reason, and the time in whole seconds', () => {
    assert.deepEqual(conditionsOf({ Accepted: missing }, 4, undefined, at('2026-01-01T00:00:00.123Z')), [
      {
        type: 'Accepted',
        status: 'False',
        reason: 'GatewayNotFound',
        message: 'There is no gateway.',
        observedGeneration: 4,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
  });

  it('keeps the time while the status stays, whatever the reason', () => {
    const first = conditionsOf({ Accepted: missing }, 1, undefined, at('2026-01-01T00:00:00Z'));
    const other = { reason: 'NoDefaultGateway', sentence: 'There is no default.' } as const;
    const [second] = conditionsOf({ Accepted: other }, 2, first, at('2026-01-01T01:00:00Z'));
    assert.equal(second?.lastTransitionTime, '2026-01-01T00:00:00Z');
    const [third] = conditionsOf({ Accepted: valid }, 2, first, at('2026-01-01T02:00:00Z'));
    assert.equal(third?.lastTransitionTime, '2026-01-01T02:00:00Z');
  });

  it('keeps a message within the limit of the API', () => {
    const [condition] = conditionsOf({ Accepted: { ...valid, sentence: 'x'.repeat(40_000) } }, 1, [], at('2026-01-01'));
    assert.equal(condition?.message.length, 32_768);
  });
});
