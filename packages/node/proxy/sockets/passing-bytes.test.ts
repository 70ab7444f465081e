import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PassingBytes } from './passing-bytes.ts';

const MIB = 1024 * 1024;

test('collects once for every few MiB, not for every chunk', () => {
  let collections = 0;
  const bytes = new PassingBytes(() => collections++);
  for (let i = 0; i < 64 * 16; i++) bytes.add(MIB / 16);
  assert.equal(collections, 16);
});

test('a collection frees buffers that nobody holds', () => {
  const before = process.memoryUsage().arrayBuffers;
  const bytes = new PassingBytes();
  let peak = 0;
  for (let i = 0; i < 1024; i++) {
    bytes.add(Buffer.allocUnsafeSlow(64 * 1024).length);
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
  }
  assert.ok(peak < 24 * MIB, `${peak / MIB} MiB of dead buffers`);
});
