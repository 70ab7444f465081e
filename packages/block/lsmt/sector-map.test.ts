import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SectorMap } from './sector-map.ts';
import { ZEROED } from './segment-index.ts';
import { atOnce } from './slices.ts';

const LEAF = 8192;
const SECTORS = 2 * LEAF + 13;
const anySector = fc.oneof(fc.nat(30), fc.integer({ min: LEAF - 12, max: LEAF + 12 }), fc.nat(SECTORS - 1));
const anyCount = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(LEAF, LEAF + 5, 2 * LEAF));
const anyChange = fc.record({ sector: anySector, count: anyCount, zero: fc.boolean() });

test('the map knows of each sector what was said last, and counts what it points to', () => {
  fc.assert(
    fc.property(fc.array(anyChange, { maxLength: 30 }), anySector, anyCount, (changes, from, length) => {
      const map = new SectorMap(SECTORS);
      const model: (number | undefined)[] = new Array(SECTORS).fill(undefined);
      let place = 8;
      for (const change of changes) {
        const count = Math.min(change.count, SECTORS - change.sector);
        if (change.zero) map.setZero(change.sector, count);
        else map.setData(change.sector, count, place);
        for (let i = 0; i < count; i++) model[change.sector + i] = change.zero ? 0 : place + i;
        if (!change.zero) place += count;
      }
      const end = Math.min(SECTORS, from + length);
      const found: (number | undefined)[] = new Array(SECTORS).fill(undefined);
      let last = from - 1;
      map.forEach(from, end - from, (sector, count, at, zeroed) => {
        assert.ok(sector > last && sector + count <= end, 'in order, inside the range');
        last = sector + count - 1;
        for (let i = 0; i < count; i++) found[sector + i] = zeroed ? 0 : at + i;
      });
      assert.deepEqual(found.slice(from, end), model.slice(from, end));
      assert.equal(map.liveSectors, model.filter((at) => at !== undefined && at > 0).length);

      const index = atOnce(map.toIndex(place));
      const sorted: (number | undefined)[] = new Array(SECTORS).fill(undefined);
      index.forEach(0, SECTORS, (sector, count, at, zeroed) => {
        assert.ok(count < 16_384);
        for (let i = 0; i < count; i++) sorted[sector + i] = zeroed ? 0 : at + i;
      });
      assert.deepEqual(sorted, model);
      assert.ok([...index.marks].every((mark, i) => mark !== ZEROED || index.places[i] === place));
    }),
    { numRuns: 150 },
  );
});

test('neighbours are joined up to what the reference joins', () => {
  const map = new SectorMap(SECTORS);
  map.setData(0, 8192, 8);
  map.setData(8192, 8190, 8200);
  assert.deepEqual([...atOnce(map.toIndex(0)).lengths], [16_382]);
  map.setData(16_382, 1, 16_390);
  assert.deepEqual([...atOnce(map.toIndex(0)).lengths], [8192, 8191], 'the sum must stay below 16,383');
});

test('zeroing a whole disk takes no memory for each of its parts', () => {
  const map = new SectorMap(2 ** 27);
  const before = process.memoryUsage().arrayBuffers;
  map.setZero(0, 2 ** 27);
  // The same in pieces that end anywhere, as logs have them.
  for (let at = 0; at < 2 ** 27; at += 16_383) map.setZero(at, Math.min(16_383, 2 ** 27 - at));
  map.setData(5, 1, 8);
  assert.ok(process.memoryUsage().arrayBuffers - before < 2 ** 20);
  assert.equal(map.liveSectors, 1);
});

test('single sectors all over a disk take 32 bytes each, not more', () => {
  const map = new SectorMap(2 ** 22);
  const before = process.memoryUsage();
  for (let i = 0; i < 2 ** 19; i++) map.setData(i * 8 + (i % 8), 1, 8 + i);
  const after = process.memoryUsage();
  const used = after.arrayBuffers - before.arrayBuffers + Math.max(0, after.heapUsed - before.heapUsed);
  assert.ok(used < 2 ** 19 * 48, `${used} bytes`);
  assert.equal(map.liveSectors, 2 ** 19);
});
