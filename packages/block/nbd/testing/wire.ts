import { COMMAND, OPTION_MAGIC, REQUEST_MAGIC } from '../protocol/numbers.ts';

/** Bytes as a client of the protocol sends them. */

export interface RequestFields {
  readonly type: number;
  readonly flags?: number;
  readonly cookie?: bigint;
  readonly offset?: bigint;
  readonly length?: number;
}

export function requestBytes(fields: RequestFields, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(28 + data.length);
  bytes.writeUInt32BE(REQUEST_MAGIC, 0);
  bytes.writeUInt16BE(fields.flags ?? 0, 4);
  bytes.writeUInt16BE(fields.type, 6);
  bytes.writeBigUInt64BE(fields.cookie ?? 0n, 8);
  bytes.writeBigUInt64BE(fields.offset ?? 0n, 16);
  bytes.writeUInt32BE(fields.length ?? data.length, 24);
  bytes.set(data, 28);
  return bytes;
}

export function writeBytes(offset: number, data: Uint8Array, cookie = 0n, flags = 0): Buffer {
  return requestBytes({ type: COMMAND.write, offset: BigInt(offset), cookie, flags }, data);
}

export function optionBytes(option: number, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(16 + data.length);
  bytes.writeBigUInt64BE(OPTION_MAGIC, 0);
  bytes.writeUInt32BE(option, 8);
  bytes.writeUInt32BE(data.length, 12);
  bytes.set(data, 16);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u32(bytes.length), bytes]);
}

/** Data of INFO and GO. */
export function infoData(name: string, types: readonly number[] = []): Buffer {
  return Buffer.concat([text(name), u16(types.length), ...types.map(u16)]);
}

/** Data of LIST_META_CONTEXT and SET_META_CONTEXT. */
export function metaContextData(name: string, queries: readonly string[]): Buffer {
  return Buffer.concat([text(name), u32(queries.length), ...queries.map(text)]);
}

export function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
