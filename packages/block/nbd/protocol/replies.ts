import {
  CHUNK,
  CHUNK_DONE,
  CHUNK_HEADER_LENGTH,
  SIMPLE_REPLY_LENGTH,
  SIMPLE_REPLY_MAGIC,
  STRUCTURED_REPLY_MAGIC,
} from './numbers.ts';

/** What a reply carries of its request. */
export interface Cookie {
  readonly cookieHigh: number;
  readonly cookieLow: number;
}

/** @param errno 0 for success */
export function writeSimpleReply(target: Buffer, at: number, cookie: Cookie, errno: number): void {
  target.writeUInt32BE(SIMPLE_REPLY_MAGIC, at);
  target.writeUInt32BE(errno, at + 4);
  target.writeUInt32BE(cookie.cookieHigh, at + 8);
  target.writeUInt32BE(cookie.cookieLow, at + 12);
}

/** Head of one chunk of a structured reply; `length` bytes of payload follow. */
export function writeChunkHeader(
  target: Buffer,
  at: number,
  cookie: Cookie,
  type: number,
  length: number,
  done: boolean,
): void {
  target.writeUInt32BE(STRUCTURED_REPLY_MAGIC, at);
  target.writeUInt16BE(done ? CHUNK_DONE : 0, at + 4);
  target.writeUInt16BE(type, at + 6);
  target.writeUInt32BE(cookie.cookieHigh, at + 8);
  target.writeUInt32BE(cookie.cookieLow, at + 12);
  target.writeUInt32BE(length, at + 16);
}

export function writeUInt64(target: Buffer, at: number, value: number): void {
  target.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  target.writeUInt32BE(value % 2 ** 32, at + 4);
}

export function simpleReply(cookie: Cookie, errno: number): Buffer {
  const reply = Buffer.allocUnsafe(SIMPLE_REPLY_LENGTH);
  writeSimpleReply(reply, 0, cookie, errno);
  return reply;
}

/** A structured reply that says nothing but that it failed. */
export function errorChunk(cookie: Cookie, errno: number): Buffer {
  const reply = Buffer.alloc(CHUNK_HEADER_LENGTH + 6);
  writeChunkHeader(reply, 0, cookie, CHUNK.error, 6, true);
  reply.writeUInt32BE(errno, CHUNK_HEADER_LENGTH);
  return reply;
}

/** Tells of a part of a read that it is zeros. */
export function holeChunk(cookie: Cookie, offset: number, length: number, done: boolean): Buffer {
  const reply = Buffer.allocUnsafe(CHUNK_HEADER_LENGTH + 12);
  writeChunkHeader(reply, 0, cookie, CHUNK.offsetHole, 12, done);
  writeUInt64(reply, CHUNK_HEADER_LENGTH, offset);
  reply.writeUInt32BE(length, CHUNK_HEADER_LENGTH + 8);
  return reply;
}

export function emptyChunk(cookie: Cookie): Buffer {
  const reply = Buffer.allocUnsafe(CHUNK_HEADER_LENGTH);
  writeChunkHeader(reply, 0, cookie, CHUNK.none, 0, true);
  return reply;
}

export interface Extent {
  /** bytes */
  readonly length: number;
  readonly flags: number;
}

export function blockStatusChunk(cookie: Cookie, contextId: number, extents: readonly Extent[]): Buffer {
  const length = 4 + 8 * extents.length;
  const reply = Buffer.allocUnsafe(CHUNK_HEADER_LENGTH + length);
  writeChunkHeader(reply, 0, cookie, CHUNK.blockStatus, length, true);
  let at = CHUNK_HEADER_LENGTH;
  at = reply.writeUInt32BE(contextId, at);
  for (const extent of extents) {
    at = reply.writeUInt32BE(extent.length, at);
    at = reply.writeUInt32BE(extent.flags, at);
  }
  return reply;
}
