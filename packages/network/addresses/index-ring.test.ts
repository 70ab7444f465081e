import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { IndexRing } from './index-ring.ts';

test('a number just returned is the last one to be used again', () => {
  const ring = new IndexRing(3);
  assert.equal(ring.take(), 1);
  ring.give(1);
  assert.deepEqual([ring.take(), ring.take(), ring.take()], [2, 3, 1]);
});

test('no number is out twice, and none is lost', () => {
  const steps = fc.array(fc.oneof(fc.constant(undefined), fc.nat({ max: 9 })), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (actions) => {
      const ring = new IndexRing(5);
      const out: number[] = [];
      for (const action of actions) {
        if (action === undefined) {
          const index = ring.take();
          assert.equal(index === undefined, out.length === 5);
          if (index !== undefined) {
            assert.ok(index >= 1 && index <= 5 && !out.includes(index));
            out.push(index);
          }
        } else {
          const [index] = out.splice(action, 1);
          if (index !== undefined) ring.give(index);
        }
        assert.equal(ring.free, 5 - out.length);
      }
    }),
  );
});
