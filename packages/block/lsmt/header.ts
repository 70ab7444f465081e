import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { HEADER_SIZE, NULL_UUID } from './format.ts';

/** What the 4096 bytes at the begin (header) and at the end (trailer) of a layer's files say. */
export interface LayerHeader {
  /** header or trailer */
  readonly isHeader: boolean;
  /** file with data, or index log of a writable layer */
  readonly isDataFile: boolean;
  readonly isSealed: boolean;
  /** form with holes instead of an index; it is not supported */
  readonly isSparse: boolean;
  /** bytes from the start of the file */
  readonly indexOffset: number;
  /** entries of 16 bytes, padding included */
  readonly indexCount: number;
  /** bytes; 0 = that of the layer below */
  readonly virtualSize: number;
  /** lower case */
  readonly uuid: string;
  readonly parentUuid: string;
  /** free text, at most 256 bytes */
  readonly userTag: string;
}

const STRUCT_SIZE = 390;
const MAGIC = Buffer.from('4c534d5400010200657e63d29444084ca2d2c8ec4fcfae8a', 'hex');
const UUID_FORM = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const HEADER_BIT = 1;
const DATA_FILE_BIT = 2;
const SEALED_BIT = 4;
const SPARSE_BIT = 16;

const ENCODED_DEFAULTS: LayerHeader = {
  isHeader: true,
  isDataFile: true,
  isSealed: false,
  isSparse: false,
  indexOffset: 0,
  indexCount: 0,
  virtualSize: 0,
  uuid: NULL_UUID,
  parentUuid: NULL_UUID,
  userTag: '',
};

export function hasLayerMagic(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && MAGIC.equals(bytes.subarray(0, MAGIC.length));
}

/** @throws RangeError for a user tag of more than 256 bytes or a uuid that is none */
export function encodeHeader(fields: Partial<LayerHeader>): Buffer {
  const h = { ...ENCODED_DEFAULTS, ...fields };
  const bytes = Buffer.alloc(HEADER_SIZE);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(STRUCT_SIZE, 24);
  bytes.writeUInt32LE(
    (h.isHeader ? HEADER_BIT : 0) |
      (h.isDataFile ? DATA_FILE_BIT : 0) |
      (h.isSealed ? SEALED_BIT : 0) |
      (h.isSparse ? SPARSE_BIT : 0),
    28,
  );
  bytes.writeBigUInt64LE(BigInt(h.indexOffset), 32);
  bytes.writeBigUInt64LE(BigInt(h.indexCount), 40);
  bytes.writeBigUInt64LE(BigInt(h.virtualSize), 48);
  for (const [uuid, at] of [
    [h.uuid, 56],
    [h.parentUuid, 93],
  ] as const) {
    if (!UUID_FORM.test(uuid.toLowerCase())) throw new RangeError(`not a uuid: ${uuid}`);
    bytes.write(uuid, at, 'latin1');
  }
  bytes[132] = 1;
  bytes[133] = 1;
  const tag = Buffer.from(h.userTag, 'utf8');
  if (tag.length > 256) throw new RangeError('a layer tag has at most 256 bytes');
  tag.copy(bytes, 134);
  return bytes;
}

/**
 * Reads a header or trailer. Fields that no reader needs (versions, reserved bytes, unknown flags) are not looked at.
 * @throws AenvError `layer_corrupt`
 */
export function decodeHeader(bytes: Uint8Array): LayerHeader {
  if (bytes.length < HEADER_SIZE || !hasLayerMagic(bytes)) throw corrupt('no LSMT header where one must be');
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, HEADER_SIZE);
  if (view.readUInt32LE(24) !== STRUCT_SIZE) throw corrupt('the size of the LSMT header is not 390');
  const flags = view.readUInt32LE(28);
  return {
    isHeader: (flags & HEADER_BIT) !== 0,
    isDataFile: (flags & DATA_FILE_BIT) !== 0,
    isSealed: (flags & SEALED_BIT) !== 0,
    isSparse: (flags & SPARSE_BIT) !== 0,
    indexOffset: safeNumber(view, 32, 'index offset'),
    indexCount: safeNumber(view, 40, 'index size'),
    virtualSize: safeNumber(view, 48, 'virtual size'),
    uuid: uuidAt(view, 56),
    parentUuid: uuidAt(view, 93),
    userTag: text(view.subarray(134, 390)),
  };
}

function safeNumber(view: Buffer, at: number, name: string): number {
  const value = Number(view.readBigUInt64LE(at));
  if (!Number.isSafeInteger(value)) throw corrupt(`the ${name} of the LSMT header is out of range`);
  return value;
}

/** Writers differ in case, and some leave the field empty. */
function uuidAt(view: Buffer, at: number): string {
  const value = text(view.subarray(at, at + 37)).toLowerCase();
  if (value === '') return NULL_UUID;
  if (!UUID_FORM.test(value)) throw corrupt('a uuid of the LSMT header is none');
  return value;
}

function text(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

function corrupt(message: string): AenvError {
  return new AenvError('layer_corrupt', message);
}
