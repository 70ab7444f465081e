import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { unpackLz4Legacy } from './lz4-legacy.ts';
import { extractVmlinux } from './vmlinux.ts';

const ELF = Buffer.concat([Buffer.from('\x7fELF\x02\x01\x01', 'latin1'), Buffer.alloc(3000, 'kernel ')]);

/** A made-up bzImage: two setup sectors and a payload somewhere behind them. */
function bzImage(payload: Buffer, change?: (image: Buffer) => void): Buffer {
  const start = 3 * 512 + 700;
  const image = Buffer.alloc(start + payload.length + 33);
  image[0x1f1] = 2;
  image.write('HdrS', 0x202, 'latin1');
  image.writeUInt16LE(0x020f, 0x206);
  image.writeUInt32LE(700, 0x248);
  image.writeUInt32LE(payload.length, 0x24c);
  payload.copy(image, start);
  change?.(image);
  return image;
}

function withSize(compressed: Buffer, size = ELF.length): Buffer {
  const trailer = Buffer.alloc(4);
  trailer.writeUInt32LE(size);
  return Buffer.concat([compressed, trailer]);
}

/** LZ4 legacy frame of ELF in two blocks: one of literals only, one of literals and an overlapping match. */
function lz4Elf(): Buffer {
  const block = (bytes: Buffer) => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(bytes.length);
    return Buffer.concat([size, bytes]);
  };
  const literals = ELF.subarray(0, 1000);
  const first = Buffer.concat([Buffer.from([0xf0, 255, 255, 255, 1000 - 15 - 3 * 255]), literals]);
  // 7 literals, then a match of the rest 7 bytes back, but for the last 5 bytes, which are literals by the rules
  const rest = ELF.subarray(1000);
  const matched = rest.length - 7 - 5;
  const long = matched - 4 - 15;
  const lengths = [...new Array<number>(Math.floor(long / 255)).fill(255), long % 255];
  const second = Buffer.concat([
    Buffer.from([0x7f]),
    rest.subarray(0, 7),
    Buffer.from([7, 0, ...lengths, 0x50]),
    rest.subarray(rest.length - 5),
  ]);
  return Buffer.concat([Buffer.from([0x02, 0x21, 0x4c, 0x18]), block(first), block(second)]);
}

function assertRefused(image: Buffer, why: RegExp): void {
  assert.throws(
    () => extractVmlinux(image),
    (error) => error instanceof AenvError && error.code === 'asset_failed' && why.test(error.message),
  );
}

test('the ELF kernel comes out of gzip, zstd and LZ4 payloads', () => {
  assert.deepEqual(extractVmlinux(bzImage(gzipSync(ELF))), ELF);
  assert.deepEqual(extractVmlinux(bzImage(withSize(zstdCompressSync(ELF)))), ELF);
  assert.deepEqual(extractVmlinux(bzImage(withSize(lz4Elf()))), ELF);
});

test('a setup size of 0 means four sectors', () => {
  const payload = gzipSync(ELF);
  const image = Buffer.concat([bzImage(payload).subarray(0, 3 * 512), Buffer.alloc(2 * 512 + 700), payload]);
  image[0x1f1] = 0;
  assert.deepEqual(extractVmlinux(image), ELF);
});

test('what is no bzImage, cut off, or compressed with something unknown is refused with the reason', () => {
  assertRefused(Buffer.alloc(64), /no setup header/);
  assertRefused(
    bzImage(gzipSync(ELF), (image) => image.write('XXXX', 0x202, 'latin1')),
    /no setup header/,
  );
  assertRefused(
    bzImage(gzipSync(ELF), (image) => image.writeUInt16LE(0x0207, 0x206)),
    /no setup header/,
  );
  assertRefused(
    bzImage(gzipSync(ELF), (image) => image.writeUInt32LE(0xfffffff0, 0x24c)),
    /cut off/,
  );
  assertRefused(bzImage(withSize(Buffer.from('BZh91AY'))), /compression is unknown/);
  assertRefused(bzImage(gzipSync(Buffer.alloc(500))), /no ELF/);
  assertRefused(bzImage(withSize(zstdCompressSync(ELF), 0xffffffff)), /no sensible size/);
});

test('damaged payloads never give a kernel', () => {
  assertRefused(bzImage(gzipSync(ELF).fill(0, 20, 40)), /cannot be unpacked/);
  assertRefused(bzImage(withSize(lz4Elf(), ELF.length + 1)), /instead of/);
  const frame = lz4Elf();
  for (let at = 4; at < frame.length; at += 1) {
    for (const value of [0, 0xff]) {
      const damaged = Buffer.from(frame);
      damaged[at] = value;
      try {
        assert.equal(unpackLz4Legacy(damaged, ELF.length).length, ELF.length);
      } catch (error) {
        assert.ok(error instanceof AenvError, String(error));
      }
    }
  }
});
