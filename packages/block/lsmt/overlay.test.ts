import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeAtOnce } from './overlay.ts';
import { type SegmentIndex, SegmentIndexBuilder, ZEROED } from './segment-index.ts';

type Row = [offset: number, length: number, place: number, mark: number];

function indexOf(rows: readonly Row[]): SegmentIndex {
  const out = new SegmentIndexBuilder(1);
  for (const row of rows) out.append(...row);
  return out.finish();
}

function rowsOf(index: SegmentIndex): Row[] {
  return Array.from({ length: index.count }, (_, i) => [
    index.offsets[i] ?? -1,
    index.lengths[i] ?? -1,
    index.places[i] ?? -1,
    index.marks[i] ?? -1,
  ]);
}

test('three layers merge as the reference merges them', () => {
  const merged = mergeAtOnce([
    indexOf([
      [10, 20, 8, 0],
      [50, 10, 28, ZEROED],
    ]),
    indexOf([
      [0, 15, 8, 1],
      [25, 30, 23, 1],
    ]),
    indexOf([[0, 100, 8, 2]]),
  ]);
  assert.deepEqual(rowsOf(merged), [
    [0, 10, 8, 1],
    [10, 20, 8, 0],
    [30, 20, 28, 1],
    [50, 10, 28, ZEROED],
    [60, 40, 68, 2],
  ]);
});

test('no layer at all merges to nothing', () => {
  assert.equal(mergeAtOnce([]).count, 0);
  assert.equal(mergeAtOnce([]).find(0), 0);
});

const SECTORS = 120;
/** Segments by gaps and lengths, so that they are sorted and do not overlap. */
const anyIndex = fc
  .array(fc.record({ gap: fc.nat(12), length: fc.integer({ min: 1, max: 12 }), zeroed: fc.boolean() }), {
    maxLength: 9,
  })
  .map((parts) => {
    const rows: Row[] = [];
    let at = 0;
    for (const [i, part] of parts.entries()) {
      rows.push([at + part.gap, part.length, 8 + i * 20, part.zeroed ? ZEROED : 0]);
      at += part.gap + part.length;
    }
    return rows;
  });

test('whatever the layers, each sector comes from the topmost layer that knows it', () => {
  fc.assert(
    fc.property(fc.array(anyIndex, { maxLength: 7 }), (layers) => {
      const model: (string | undefined)[] = new Array(SECTORS * 3).fill(undefined);
      for (const [level, rows] of [...layers.entries()].reverse()) {
        for (const [offset, length, place, mark] of rows) {
          for (let i = 0; i < length; i++)
            model[offset + i] = mark === ZEROED ? `zero ${level}:${place}` : `${level}:${place + i}`;
        }
      }
      const merged = mergeAtOnce(layers.map((rows, level) => indexOf(rows).atLevel(level)));
      const flat: (string | undefined)[] = new Array(SECTORS * 3).fill(undefined);
      let end = 0;
      for (const [offset, length, place, mark] of rowsOf(merged)) {
        assert.ok(offset >= end && length > 0, 'sorted, without overlaps');
        end = offset + length;
        for (let i = 0; i < length; i++)
          flat[offset + i] = mark & ZEROED ? `zero ${mark & 255}:${place}` : `${mark}:${place + i}`;
      }
      assert.deepEqual(flat, model);
      for (let sector = 0; sector <= end; sector++) {
        const found = merged.find(sector);
        const expected = rowsOf(merged).findIndex(([offset, length]) => offset + length > sector);
        assert.equal(found, expected < 0 ? merged.count : expected);
      }
    }),
  );
});
