import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memorySource } from '../blob/memory-source.ts';
import { isCode } from '../testing/is-code.ts';
import { encodeTarHeader, TAR_BLOCK } from './header.ts';
import { findPayload, WRAPPER_SIZE, wrapperHeader, wrapperTrailer } from './wrapper.ts';

function wrapped(payload: Buffer): Buffer {
  return Buffer.concat([wrapperHeader(payload.length), payload, wrapperTrailer(payload.length)]);
}

test('headers have the bytes of the reference', () => {
  const header = wrapperHeader(639_491);
  assert.equal(header.toString('latin1', 0, 13), 'overlaybd.pax');
  assert.equal(header.toString('latin1', 124, 136), '         17 ');
  assert.equal(header.toString('latin1', 148, 157), '  5356 \0x');
  assert.equal(header.toString('latin1', 512, 528), '15 size=639491\n\0');
  assert.equal(header.toString('latin1', 1024 + 100, 1024 + 124), '100644 \0     0 \0     0 \0');
  assert.equal(header.toString('latin1', 1024 + 124, 1024 + 157), `${' '.repeat(10)}0 ${' '.repeat(10)}0  12025 \x000`);
});

test('a payload is found in what was wrapped, for sizes around the unit of a tar', async () => {
  for (const size of [0, 1, 511, 512, 513, 9_999, 10_000]) {
    const tar = wrapped(Buffer.alloc(size, 'p'));
    assert.equal(tar.length % TAR_BLOCK, 0);
    assert.deepEqual(await findPayload(memorySource(tar)), { offset: WRAPPER_SIZE, size });
  }
});

test('a payload is found behind an ordinary header', async () => {
  const tar = Buffer.concat([encodeTarHeader('layer', '0', 700), Buffer.alloc(1024), wrapperTrailer(0)]);
  assert.deepEqual(await findPayload(memorySource(tar)), { offset: TAR_BLOCK, size: 700 });
});

test('what is no tar is left alone', async () => {
  assert.equal(await findPayload(memorySource(Buffer.alloc(0))), undefined);
  assert.equal(await findPayload(memorySource(Buffer.alloc(4096))), undefined);
  const tar = wrapped(Buffer.alloc(100));
  tar[150] = 0x37;
  assert.equal(await findPayload(memorySource(tar)), undefined);
});

test('tars that lie about their size, or hold no file, are refused', async () => {
  const cut = wrapped(Buffer.alloc(5000)).subarray(0, 4000);
  await assert.rejects(findPayload(memorySource(cut)), isCode('layer_corrupt'));
  const noFile = wrapped(Buffer.alloc(10));
  encodeTarHeader('again', 'x', 0).copy(noFile, 1024);
  await assert.rejects(findPayload(memorySource(noFile)), isCode('layer_corrupt'));
  const noHeader = wrapped(Buffer.alloc(10)).fill(0, 1024, 1536);
  await assert.rejects(findPayload(memorySource(noHeader)), isCode('layer_corrupt'));
  const onlyPax = wrapped(Buffer.alloc(10)).subarray(0, 1000);
  await assert.rejects(findPayload(memorySource(onlyPax)), isCode('layer_corrupt'));
});
