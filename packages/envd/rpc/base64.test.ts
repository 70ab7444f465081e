import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { installBase64 } from './base64.ts';

// The protobuf library must not be loaded before, or it would not see the methods.
installBase64();
const { base64Decode, base64Encode } = await import('@bufbuild/protobuf/wire');

test('all lengths and alphabets go there and back as Buffer does it', () => {
  for (let length = 0; length < 70; length++) {
    const bytes = randomBytes(length);
    assert.equal(base64Encode(bytes), bytes.toString('base64'));
    assert.equal(base64Encode(bytes, 'std_raw'), bytes.toString('base64').replace(/=/g, ''));
    assert.equal(base64Encode(bytes, 'url'), bytes.toString('base64url'));
    for (const text of [bytes.toString('base64'), bytes.toString('base64url')]) {
      assert.deepEqual(Buffer.from(base64Decode(text)), bytes);
    }
  }
});

test('what is no base64 is refused, wherever it is', () => {
  for (const text of ['a', 'abcde', '!bcd', 'ab!d', 'abc!', 'ab!=', 'abcdefg!']) {
    assert.throws(() => base64Decode(text), text);
  }
});
