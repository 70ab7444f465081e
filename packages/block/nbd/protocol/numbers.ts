/** Numbers of the NBD protocol (NetworkBlockDevice/nbd, doc/proto.md). All integers on the wire are big-endian. */

export const GREETING = Buffer.from('NBDMAGICIHAVEOPT', 'latin1');
/** Of every option of the client: `IHAVEOPT`. */
export const OPTION_MAGIC = 0x49484156454f5054n;
export const OPTION_REPLY_MAGIC = 0x0003e889045565a9n;
export const REQUEST_MAGIC = 0x25609513;
export const SIMPLE_REPLY_MAGIC = 0x67446698;
export const STRUCTURED_REPLY_MAGIC = 0x668e33ef;

/** Handshake flags, the same bits from both sides. */
export const HANDSHAKE = { fixedNewstyle: 1, noZeroes: 2 } as const;

export const OPTION = {
  exportName: 1,
  abort: 2,
  list: 3,
  startTls: 5,
  info: 6,
  go: 7,
  structuredReply: 8,
  listMetaContext: 9,
  setMetaContext: 10,
} as const;

const ERROR_BIT = 2 ** 31;

export const REPLY = {
  ack: 1,
  server: 2,
  info: 3,
  metaContext: 4,
  unsupported: ERROR_BIT + 1,
  invalid: ERROR_BIT + 3,
  unknownExport: ERROR_BIT + 6,
  tooBig: ERROR_BIT + 9,
} as const;

export const INFO = { export: 0, name: 1, blockSize: 3 } as const;

/** What an export can do. */
export const EXPORT_FLAG = {
  hasFlags: 1,
  readOnly: 2,
  flush: 4,
  fua: 8,
  trim: 32,
  writeZeroes: 64,
  dontFragment: 128,
  multiConn: 256,
  fastZero: 2048,
} as const;

export const COMMAND = { read: 0, write: 1, disconnect: 2, flush: 3, trim: 4, writeZeroes: 6, blockStatus: 7 } as const;

export const COMMAND_FLAG = { fua: 1, noHole: 2, dontFragment: 4, requestOne: 8, fastZero: 16 } as const;

export const CHUNK = { none: 0, offsetData: 1, offsetHole: 2, blockStatus: 5, error: 2 ** 15 + 1 } as const;
/** The last chunk of a structured reply. */
export const CHUNK_DONE = 1;

/** Values of `base:allocation`: 0 is data. */
export const EXTENT = { hole: 1, zero: 2 } as const;
export const BASE_ALLOCATION = 'base:allocation';

export const ERRNO = {
  permission: 1,
  io: 5,
  noMemory: 12,
  invalid: 22,
  noSpace: 28,
  shutDown: 108,
} as const;

/** Bytes. Requests need not be aligned to `minimum`, but whoever asks is told that it is better. */
export const BLOCK_SIZE = { minimum: 512, preferred: 4096, maximum: 32 * 1024 * 1024 } as const;

export const REQUEST_LENGTH = 28;
export const SIMPLE_REPLY_LENGTH = 16;
export const CHUNK_HEADER_LENGTH = 20;
