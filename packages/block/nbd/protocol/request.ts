import { REQUEST_LENGTH, REQUEST_MAGIC } from './numbers.ts';

/** A request as it came; nothing but its magic number is checked. */
export interface Request {
  readonly flags: number;
  readonly type: number;
  /** 8 bytes that go back with the reply, a copy */
  readonly cookieHigh: number;
  readonly cookieLow: number;
  /** bytes; `Infinity` where the wire had more than a safe integer */
  readonly offset: number;
  /** bytes */
  readonly length: number;
}

const MAX_HIGH = 2 ** 21;

/**
 * @param header 28 bytes
 * @returns undefined when this is no request, after which nothing of the stream can be understood
 */
export function parseRequest(header: Buffer): Request | undefined {
  if (header.length < REQUEST_LENGTH || header.readUInt32BE(0) !== REQUEST_MAGIC) return undefined;
  const high = header.readUInt32BE(16);
  return {
    flags: header.readUInt16BE(4),
    type: header.readUInt16BE(6),
    cookieHigh: header.readUInt32BE(8),
    cookieLow: header.readUInt32BE(12),
    offset: high < MAX_HIGH ? high * 2 ** 32 + header.readUInt32BE(20) : Number.POSITIVE_INFINITY,
    length: header.readUInt32BE(24),
  };
}
