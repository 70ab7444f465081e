import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PartialWriter, writeFully } from './write-fully.ts';

/** A disk of so many bytes, which takes seven of them at a time, and as many as there are before it is full. */
function disk(room: number): PartialWriter & { readonly bytes: Buffer } {
  const bytes = Buffer.alloc(room, '.');
  return {
    bytes,
    async write(data, offset, length, position) {
      const count = Math.min(length, 7, room - position);
      if (count <= 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      bytes.set(data.subarray(offset, offset + count), position);
      return { bytesWritten: count };
    },
  };
}

test('all is written where a call takes a part only, and a disk that is full in between is told', async () => {
  const large = disk(40);
  await writeFully(large, Buffer.from('0123456789abcdefghij'), 4);
  assert.equal(large.bytes.toString(), '....0123456789abcdefghij................');
  await assert.rejects(writeFully(disk(15), Buffer.from('0123456789abcdefghij'), 0), { code: 'ENOSPC' });
});
