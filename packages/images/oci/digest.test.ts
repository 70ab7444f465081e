import assert from 'node:assert/strict';
import { test } from 'node:test';
import { digestOf } from '../testing/layout.ts';
import { parseDigest, requireDigest, verified } from './digest.ts';

const DATA = Buffer.from('some bytes');

test('only the two known forms are digests, because they become file names', () => {
  assert.deepEqual(parseDigest(`sha256:${'0a'.repeat(32)}`), { algorithm: 'sha256', hex: '0a'.repeat(32) });
  assert.equal(parseDigest(`sha512:${'0a'.repeat(64)}`)?.algorithm, 'sha512');
  const bad = ['', 'sha256:', `sha256:${'0A'.repeat(32)}`, `sha256:${'0a'.repeat(31)}`, `md5:${'0a'.repeat(16)}`];
  bad.push('sha256:../../x', `sha256:${'0a'.repeat(32)}\n`, `SHA256:${'0a'.repeat(32)}`, `sha256:${'0a'.repeat(32)}/x`);
  for (const text of bad) {
    assert.equal(parseDigest(text), undefined, text);
    assert.throws(() => requireDigest(text), { code: 'image_invalid' });
  }
});

async function read(size: number | undefined, digest = digestOf(DATA)): Promise<string> {
  async function* source() {
    yield DATA.subarray(0, 4);
    yield DATA.subarray(4);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of verified(source(), requireDigest(digest), size, 'blob')) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('a stream passes when size and digest are right', async () => {
  assert.equal(await read(DATA.length), 'some bytes');
  assert.equal(await read(undefined), 'some bytes');
});

test('a wrong digest is told with both digests, a wrong size with both sizes', async () => {
  const other = digestOf(Buffer.from('other'));
  await assert.rejects(read(DATA.length, other), (error: Error) => {
    return error.message.includes(other) && error.message.includes(digestOf(DATA));
  });
  await assert.rejects(read(DATA.length + 1), { code: 'image_invalid', message: /10 bytes instead of 11/ });
  await assert.rejects(read(DATA.length - 1), { code: 'image_invalid', message: /more than 9 bytes instead of 9/ });
});
