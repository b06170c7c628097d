import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Detection } from './detection.ts';

const between = { usualMs: 100, widestMs: 1_000 };

describe('Detection', () => {
  it('reports nothing while losses are noticed as configured', () => {
    const detection = new Detection();
    assert.equal(detection.silenceMs, undefined);
    assert.deepEqual(detection.take({ silenceMs: 100, ...between }), { isWidened: false, isNews: false });
    assert.deepEqual([detection.silenceMs, detection.reportedMs], [100, undefined]);
  });

  it('reports from twice the usual silence on, in few steps, the slowest until all is as configured again', () => {
    const detection = new Detection();
    const reported = [125, 175, 225, 150, 400, 425, 1_000, 300, 100].map((silenceMs) => {
      const { isNews } = detection.take({ silenceMs, ...between });
      return isNews ? (detection.reportedMs ?? 'as configured') : 'no news';
    });
    const none = 'no news';
    assert.deepEqual(reported, [none, none, 400, none, none, 800, 1_000, none, 'as configured']);
  });

  it('counts each longer silence as a widening', () => {
    const detection = new Detection();
    const widened = [125, 150, 150, 125, 150, 100].map(
      (silenceMs) => detection.take({ silenceMs, ...between }).isWidened,
    );
    assert.deepEqual(widened, [true, true, false, false, true, false]);
  });
});
