import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { FlatMemory } from '../testing/flat-memory.ts';
import { type Change, giveChanges, MIB, PAGE } from '../testing/lab.ts';
import { DeltaReader } from './delta-reader.ts';
import { DeltaWriter } from './delta-writer.ts';

const MEMORY = 3 * MIB;
const PAGES = MEMORY / PAGE;

async function scratch(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'delta-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

const writerOf = (path: string, memoryBytes = MEMORY) =>
  DeltaWriter.create({ path, memoryBytes, isZeroInBase: () => false });

/** Changes in ascending order: gaps and runs. */
const anyChanges = fc
  .array(
    fc.record({
      gap: fc.oneof(fc.constant(0), fc.nat(40)),
      count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 300 })),
      value: fc.nat(3),
    }),
    { maxLength: 30 },
  )
  .map((parts) => {
    const changes: Change[] = [];
    let page = 0;
    for (const { gap, count, value } of parts) {
      page += gap;
      if (page + count > PAGES) break;
      changes.push({ page, count, value });
      page += count;
    }
    return changes;
  });

test('whatever runs of pages and zeros are written, a reader gives the same memory, in ascending order', async (t) => {
  const folder = await scratch(t);
  let number = 0;
  await fc.assert(
    fc.asyncProperty(anyChanges, async (changes) => {
      const path = join(folder, `${number++}`);
      const base = Buffer.alloc(MEMORY, 9);
      const wanted = new FlatMemory(Buffer.from(base));
      await giveChanges(changes, wanted);
      const writer = await writerOf(path);
      await giveChanges(changes, writer);
      await writer.seal();
      const delta = await writer.describe(false);
      await writer.close();

      const reader = await DeltaReader.open(path, 'delta', MEMORY, delta);
      const found = new FlatMemory(base);
      let end = 0;
      const inOrder = (offset: number, length: number) => {
        assert.ok(offset >= end && offset % PAGE === 0 && length % PAGE === 0);
        end = offset + length;
      };
      await reader.give({
        data(offset, bytes) {
          inOrder(offset, bytes.length);
          found.data(offset, bytes);
        },
        zero(offset, length) {
          inOrder(offset, length);
          found.zero(offset, length);
        },
      });
      await reader.close();
      assert.ok(found.bytes.equals(wanted.bytes));
      await rm(path);
    }),
    { numRuns: 30 },
  );
});

test('pages that come faster than the disk takes them are all written, whatever the pieces', async (t) => {
  const path = join(await scratch(t), 'delta');
  const memory = 24 * MIB;
  const content = randomBytes(memory);
  const writer = await writerOf(path, memory);
  for (let at = 0, size = PAGE; at < memory; at += size, size = Math.min(memory - at, (size * 2) % (7 * MIB) || PAGE)) {
    size = Math.max(PAGE, size - (size % PAGE));
    const piece = Buffer.from(content.subarray(at, at + size));
    await writer.data(at, piece);
    // Only valid during the call.
    piece.fill(0);
  }
  await writer.seal();
  const delta = await writer.describe(true);
  await writer.close();
  assert.equal(delta.dataBytes, memory);
  const reader = await DeltaReader.open(path, 'delta', memory, delta);
  const found = new FlatMemory(Buffer.alloc(memory));
  await reader.give(found);
  await reader.close();
  assert.ok(found.bytes.equals(content));
});

test('what is expected changes nothing of what is written, whether more comes, less or nothing', async (t) => {
  const folder = await scratch(t);
  const changes = [{ page: 1, count: 600, value: 5 }];
  const files: Buffer[] = [];
  for (const [at, expected] of [undefined, PAGE, 600 * PAGE, 2 ** 40].entries()) {
    const path = join(folder, `${at}`);
    const memoryBytes = 200 * MIB;
    const writer = await writerOf(path, memoryBytes);
    if (expected !== undefined) await writer.expect(expected);
    // All that is made ahead is bounded, whatever is expected.
    assert.ok((await stat(path)).size <= 128 * MIB);
    await giveChanges(changes, writer);
    await writer.seal();
    const delta = await writer.describe(false);
    await writer.close();
    assert.equal((await stat(path)).size, delta.sizeBytes);
    files.push(await readFile(path));
  }
  const [plain, ...others] = files.map((file) => file.subarray(PAGE, -PAGE));
  assert.ok(plain !== undefined && others.every((other) => other.equals(plain)));
});

test('zeros that the base has anyway are not written', async (t) => {
  const path = join(await scratch(t), 'delta');
  const writer = await DeltaWriter.create({ path, memoryBytes: MEMORY, isZeroInBase: (offset) => offset >= MIB });
  writer.zero(0, PAGE);
  writer.zero(MIB, PAGE);
  assert.equal(writer.changedBytes, PAGE);
  await writer.seal();
  const delta = await writer.describe(false);
  await writer.close();
  assert.deepEqual([delta.dataBytes, delta.zeroBytes], [0, PAGE]);
});

test('pages that are out of order, not whole or outside of the memory are refused', async (t) => {
  const writer = await writerOf(join(await scratch(t), 'delta'));
  await writer.data(PAGE, Buffer.alloc(PAGE));
  for (const attempt of [
    () => writer.data(0, Buffer.alloc(PAGE)),
    () => writer.zero(PAGE, PAGE),
    () => writer.data(2 * PAGE + 1, Buffer.alloc(PAGE)),
    () => writer.data(2 * PAGE, Buffer.alloc(PAGE - 1)),
    () => writer.zero(2 * PAGE, 0),
    () => writer.zero(MEMORY, PAGE),
  ]) {
    assert.throws(attempt, RangeError);
  }
  await writer.close();
});

test('a byte that is changed anywhere is refused, before the index is used or at the latest when all was given', async (t) => {
  const path = join(await scratch(t), 'delta');
  const writer = await writerOf(path);
  await giveChanges(
    [
      { page: 0, count: 2, value: 7 },
      { page: 2, count: 3, value: 0 },
      { page: 9, count: 1, value: 8 },
    ],
    writer,
  );
  await writer.seal();
  const delta = await writer.describe(false);
  await writer.close();
  const good = await readFile(path);
  const read = async () => {
    const reader = await DeltaReader.open(path, 'delta of x', MEMORY, delta);
    try {
      await reader.give({ data() {}, zero() {} });
    } finally {
      await reader.close();
    }
  };
  await read();
  const places = new Set([0, 30, 40, 4095, 5 * PAGE - 1, good.length - 4096 - 1, good.length - 1]);
  for (let at = 0; at < good.length; at += 1009) places.add(at);
  for (let at = good.length - 4096; at < good.length - 4096 + 390; at += 7) places.add(at);
  for (const at of places) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 1;
    await writeFile(path, bad);
    await assert.rejects(read, (error) => {
      assert.ok(error instanceof AenvError && error.code === 'snapshot_corrupt', `byte ${at}: ${error}`);
      assert.match(error.message, /delta of x/);
      return true;
    });
  }
  await writeFile(path, good.subarray(0, good.length - 512));
  await assert.rejects(read, { code: 'snapshot_corrupt' });
});
