import { rawCrc32c } from '@aenv/block/zfile/crc32c.ts';

/** A read of a layer, as the reference's prefetcher writes it down. */
export interface TraceRecord {
  /** place of the layer in its stack, lowest first */
  readonly layer: number;
  readonly offset: number;
  /** bytes */
  readonly length: number;
}

/**
 * The file `trace` of overlaybd: a header of 24 bytes (u32 magic, u32 padding, u64 bytes of the records, u32 raw CRC-32C
 * of them, u32 padding), then records of 24 bytes (u8 `R` or `W`, 3 padding, u32 layer, u64 length, i64 offset in the
 * unwrapped layer), little endian.
 */
const SIZE = 24;
const MAGIC = 3_270_449_184;
const READ = 'R'.charCodeAt(0);

/** The longest trace that is read or written. */
export const MAX_RECORDS = 65_536;

export function encodeTrace(records: readonly TraceRecord[]): Buffer {
  const data = Buffer.alloc(SIZE * (records.length + 1));
  for (const [at, { layer, offset, length }] of records.entries()) {
    const start = SIZE * (at + 1);
    data[start] = READ;
    data.writeUInt32LE(layer, start + 4);
    data.writeBigUInt64LE(BigInt(length), start + 8);
    data.writeBigInt64LE(BigInt(offset), start + 16);
  }
  data.writeUInt32LE(MAGIC, 0);
  data.writeBigUInt64LE(BigInt(SIZE * records.length), 8);
  data.writeUInt32LE(rawCrc32c(data.subarray(SIZE)), 16);
  return data;
}

/**
 * The reads of a trace; its writes are passed over.
 * @returns undefined for what is no whole trace, or one that is too long
 */
export function decodeTrace(data: Buffer): TraceRecord[] | undefined {
  if (data.length < SIZE || data.readUInt32LE(0) !== MAGIC) return undefined;
  const body = data.subarray(SIZE);
  const count = body.length / SIZE;
  if (data.readBigUInt64LE(8) !== BigInt(body.length) || !Number.isInteger(count) || count > MAX_RECORDS)
    return undefined;
  if (data.readUInt32LE(16) !== rawCrc32c(body)) return undefined;
  const records: TraceRecord[] = [];
  for (let at = 0; at < body.length; at += SIZE) {
    if (body[at] !== READ) continue;
    const length = Number(body.readBigUInt64LE(at + 8));
    const offset = Number(body.readBigInt64LE(at + 16));
    if (!Number.isSafeInteger(length) || !Number.isSafeInteger(offset + length) || offset < 0) return undefined;
    records.push({ layer: body.readUInt32LE(at + 4), offset, length });
  }
  return records;
}
