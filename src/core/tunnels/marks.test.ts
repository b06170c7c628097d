import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { assignMarks } from './marks.ts';

const claims = (...nodes: readonly (readonly [node: string, recorded?: string])[]) =>
  nodes.map(([node, recorded]) => ({ node, recorded }));

describe('assignMarks', () => {
  it('makes the mark from the node name alone', () => {
    const alone = assignMarks(claims(['node-a'])).get('node-a');
    assert.match(alone ?? '', /^0x26[0-9a-f]{4}00$/);
    assert.equal(assignMarks(claims(['node-b'], ['node-a'])).get('node-a'), alone);
  });

  it('keeps a recorded mark, also one whose last digits another program chose', () => {
    assert.equal(assignMarks(claims(['node-a', '0x26d9b723'])).get('node-a'), '0x26d9b723');
  });

  it('gives the younger of two with the same mark another one', () => {
    const marks = assignMarks(claims(['old', '0x26111100'], ['young', '0x26111100']));
    assert.equal(marks.get('old'), '0x26111100');
    assert.notEqual(marks.get('young'), '0x26111100');
  });

  it('takes marks for equal that differ in the last two digits only', () => {
    const marks = assignMarks(claims(['old', '0x26111100'], ['young', '0x26111123']));
    assert.notEqual(marks.get('young'), '0x26111123');
  });

  for (const strange of ['0x27111100', '0x26', '0x26000000', 'zebra', '']) {
    it(`makes a new mark where ${JSON.stringify(strange)} is recorded`, () => {
      assert.equal(
        assignMarks(claims(['node-a', strange])).get('node-a'),
        assignMarks(claims(['node-a'])).get('node-a'),
      );
    });
  }

  it('does not give out the mark of a tunnel that is being removed', () => {
    const mark = assignMarks(claims(['node-a'])).get('node-a') ?? '';
    assert.notEqual(assignMarks(claims(['node-a']), [mark]).get('node-a'), mark);
  });

  it('has one for each of 5,000 nodes, and keeps them all when one is added', () => {
    const nodes = Array.from({ length: 5000 }, (_, index) => `node-${index}`);
    const before = assignMarks(nodes.map((node) => ({ node, recorded: undefined })));
    assert.equal(new Set(before.values()).size, 5000);
    const after = assignMarks([
      ...nodes.map((node) => ({ node, recorded: before.get(node) })),
      { node: 'new', recorded: undefined },
    ]);
    for (const node of nodes) assert.equal(after.get(node), before.get(node));
  });

  it('is a fixed point', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 20 }), (nodes) => {
        const first = assignMarks(nodes.map((node) => ({ node, recorded: undefined })));
        assert.deepEqual(assignMarks(nodes.map((node) => ({ node, recorded: first.get(node) }))), first);
      }),
    );
  });
});
