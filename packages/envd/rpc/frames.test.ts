import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { endFrame, jsonFrame, readFrames } from './frames.ts';

async function* pieces(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
    yield bytes.subarray(from, cut);
    from = cut;
  }
}

async function messages(source: AsyncIterable<Buffer>, limit = 1000): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const message of readFrames(source, limit)) found.push(JSON.parse(message.toString()));
  return found;
}

test('frames come out whole, however the bytes are cut', async () => {
  const list = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(list, fc.array(fc.nat(), { maxLength: 8 }), async (texts, cuts) => {
      const bytes = Buffer.concat(texts.map((text) => jsonFrame({ text })));
      const places = cuts.map((cut) => cut % (bytes.length + 1));
      assert.deepEqual(
        await messages(pieces(bytes, places)),
        texts.map((text) => ({ text })),
      );
    }),
  );
  const two = Buffer.concat([jsonFrame({ a: 'é🦀' }), jsonFrame({})]);
  for (let cut = 0; cut <= two.length; cut++) {
    assert.deepEqual(await messages(pieces(two, [cut])), [{ a: 'é🦀' }, {}], `cut at ${cut}`);
  }
});

test('what is no whole frame is refused, wherever it ends', async () => {
  const one = jsonFrame({ a: 'é🦀' });
  for (let end = 1; end < one.length; end++) {
    await assert.rejects(messages(pieces(one.subarray(0, end), [])), { status: 400 }, `ends at ${end}`);
  }
  assert.deepEqual(await messages(pieces(Buffer.alloc(0), [])), []);
});

test('flags and lengths are refused by the head alone', async () => {
  for (const flags of [1, 2, 3, 4, 0x80]) {
    await assert.rejects(messages(pieces(Buffer.from([flags, 0, 0, 0, 2]), [])), { status: 400 }, `flags ${flags}`);
  }
  await assert.rejects(messages(pieces(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), [])), { code: 'body_too_large' });
  await assert.rejects(messages(pieces(jsonFrame({ a: 'x'.repeat(100) }), []), 50), { code: 'body_too_large' });
});

test('the end frame is an empty object, or holds the error', () => {
  assert.deepEqual(endFrame(), Buffer.from([2, 0, 0, 0, 2, 0x7b, 0x7d]));
  const failed = endFrame({ code: 'not_found', message: 'é' });
  assert.equal(failed[0], 2);
  assert.equal(failed.readUInt32BE(1), failed.length - 5);
  assert.deepEqual(JSON.parse(failed.subarray(5).toString()), { error: { code: 'not_found', message: 'é' } });
});
