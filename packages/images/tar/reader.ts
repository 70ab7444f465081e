import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ByteReader } from './byte-reader.ts';
import { type TarEntry, typeOf } from './entry.ts';
import { BLOCK, isZeroBlock, parseHeader, type TarHeader } from './header.ts';
import { parseDecimal, parseTime } from './numbers.ts';
import { MAX_RECORDS, type PaxRecords, parsePax, xattrsOf } from './pax.ts';
import { readOldSparse, readPaxSparse, type Segment, type SparseMap } from './sparse.ts';

export interface TarMember {
  readonly entry: TarEntry;
  /** The content, once, holes as zeros; what is not read is skipped when the next member is asked for. */
  content(): AsyncIterable<Buffer>;
  /** The same without the holes of sparse members, with places in the file. */
  pieces(): AsyncIterable<{ readonly offset: number; readonly data: Buffer }>;
}

/** The most that an extended header or a long name may hold, in bytes; xattr values are at most 64 KiB each on Linux. */
const MAX_EXTENSION = 1024 * 1024;
const MAX_NAME = 4096;
/** Extended headers in a row before a member: a global one, a local one and two long names make sense. */
const MAX_EXTENSIONS = 16;

/**
 * Reads an uncompressed tar archive: v7, ustar, PAX (local and global headers) and GNU long names, large numbers in
 * either form, and all four forms of GNU's sparse members. Everything is bounded but the content of members, which streams.
 * @throws AenvError `image_invalid`; what the source throws comes through
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarMember> {
  const input = new ByteReader(source);
  try {
    yield* members(input);
  } finally {
    await input.close();
  }
}

async function* members(input: ByteReader): AsyncGenerator<TarMember> {
  let globals: PaxRecords = new Map();
  for (;;) {
    const extensions = new Extensions();
    let block: Buffer | undefined;
    let header: TarHeader | undefined;
    for (let count = 0; header === undefined; count++) {
      block = await nextBlock(input);
      if (block === undefined) {
        // What follows the end marker is padding; it is read because the blob's digest covers it.
        await input.drain();
        return;
      }
      const next = headerOf(block);
      if (count > MAX_EXTENSIONS) throw invalid('too many extended headers in a row');
      if (!'xgLK'.includes(next.flag)) header = next;
      else if (next.flag === 'g') globals = kept(merge(globals, pax(await extension(input, next))));
      else extensions.add(next.flag, await extension(input, next));
    }
    const records = merge(globals, extensions.records);
    const isFile = typeOf(header.flag, '') === 'file';
    const stored = isFile ? whole(records, 'size', header.size) : 0;
    const sparse =
      header.flag === 'S' && block !== undefined
        ? await readOldSparse(block, input)
        : isFile
          ? await readPaxSparse(records, input)
          : undefined;
    const entry = toEntry(header, records, extensions, sparse?.size ?? stored);
    const body = new Body(input, entry.type === 'file' ? stored : 0, sparse);
    yield { entry, content: () => body.content(), pieces: () => body.pieces() };
    await body.skipRest();
  }
}

class Extensions {
  records: PaxRecords = new Map();
  longName: string | undefined;
  longLink: string | undefined;

  add(flag: string, data: Buffer): void {
    if (flag === 'x') this.records = pax(data);
    else if (flag === 'L') this.longName = cString(data);
    else this.longLink = cString(data);
  }
}

/** The content of a member and the padding behind it. */
class Body {
  readonly #input: ByteReader;
  readonly #size: number;
  readonly #segments: readonly Segment[];
  #segment = 0;
  /** bytes of the current segment that were read */
  #done = 0;
  #padding: number;

  constructor(input: ByteReader, stored: number, sparse: SparseMap | undefined) {
    this.#input = input;
    this.#segments = sparse?.segments ?? [{ offset: 0, length: stored }];
    this.#size = sparse?.size ?? stored;
    const data = this.#segments.reduce((sum, { length }) => sum + length, 0);
    if (data + (sparse?.mapBytes ?? 0) !== stored) throw invalid('a sparse member has another size than its map');
    this.#padding = (BLOCK - (stored % BLOCK)) % BLOCK;
  }

  async *pieces(): AsyncGenerator<{ readonly offset: number; readonly data: Buffer }> {
    for (; this.#segment < this.#segments.length; this.#segment++, this.#done = 0) {
      const { offset = 0, length = 0 } = this.#segments[this.#segment] ?? {};
      while (this.#done < length) {
        const data = await this.#input.some(length - this.#done);
        if (data.length === 0) throw invalid('ends in the middle of a file');
        const at = offset + this.#done;
        this.#done += data.length;
        yield { offset: at, data };
      }
    }
  }

  async *content(): AsyncGenerator<Buffer> {
    let position = 0;
    for await (const { offset, data } of this.pieces()) {
      yield* zeros(offset - position);
      yield data;
      position = offset + data.length;
    }
    yield* zeros(this.#size - position);
  }

  async skipRest(): Promise<void> {
    for await (const _ of this.pieces());
    if ((await this.#input.upTo(this.#padding)).length < this.#padding) throw invalid('ends in the middle of a block');
    this.#padding = 0;
  }
}

const ZEROS = Buffer.alloc(64 * 1024);

function* zeros(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= ZEROS.length) yield ZEROS.subarray(0, left);
}

/** The next header block; undefined at the end marker, or at the end of a stream that has none. */
async function nextBlock(input: ByteReader): Promise<Buffer | undefined> {
  const block = await input.upTo(BLOCK);
  if (block.length === 0) return undefined;
  if (block.length < BLOCK) throw invalid('ends in the middle of a header');
  return isZeroBlock(block) ? undefined : block;
}

function headerOf(block: Buffer): TarHeader {
  const header = parseHeader(block);
  if ('problem' in header) throw invalid(header.problem);
  return header;
}

async function extension(input: ByteReader, header: TarHeader): Promise<Buffer> {
  if (header.size > MAX_EXTENSION) throw invalid(`an extended header holds ${header.size} bytes`);
  const padded = Math.ceil(header.size / BLOCK) * BLOCK;
  const data = await input.upTo(padded);
  if (data.length < padded) throw invalid('ends in the middle of an extended header');
  return data.subarray(0, header.size);
}

function toEntry(header: TarHeader, records: PaxRecords, extensions: Extensions, size: number): TarEntry {
  const name =
    (records.get('GNU.sparse.name') ?? records.get('path'))?.toString('latin1') ?? extensions.longName ?? header.name;
  const linkName = records.get('linkpath')?.toString('latin1') ?? extensions.longLink ?? header.linkName;
  if (name.length > MAX_NAME || linkName.length > MAX_NAME) throw invalid('a name is longer than 4096 bytes');
  if (name.includes('\0') || linkName.includes('\0')) throw invalid('a name holds a zero byte');
  const type = typeOf(header.flag, name);
  if (type === undefined) throw invalid(`${quoted(name)} has the unknown type ${quoted(header.flag)}`);
  return {
    type,
    name,
    linkName,
    mode: header.mode & 0o7777,
    uid: whole(records, 'uid', header.uid),
    gid: whole(records, 'gid', header.gid),
    // Links, directories and devices carry no content, whatever their header says.
    size: type === 'file' ? size : 0,
    mtime: time(records, header.mtime),
    devMajor: header.devMajor,
    devMinor: header.devMinor,
    xattrs: xattrsOf(records),
  };
}

function decimal(records: PaxRecords, key: string, fallback: number): number {
  const text = records.get(key)?.toString('latin1');
  if (text === undefined) return fallback;
  const value = parseDecimal(text);
  if (value === undefined) throw invalid(`the PAX record ${key} is not a number`);
  return value;
}

function time(records: PaxRecords, fallback: number): TarEntry['mtime'] {
  const text = records.get('mtime')?.toString('latin1');
  if (text === undefined) return { seconds: fallback, nanoseconds: 0 };
  const value = parseTime(text);
  if (value === undefined) throw invalid('the PAX record mtime is not a number');
  return value;
}

function whole(records: PaxRecords, key: string, fallback: number): number {
  const value = decimal(records, key, fallback);
  if (!Number.isSafeInteger(value) || value < 0) throw invalid(`the PAX record ${key} is out of range`);
  return value;
}

function pax(data: Buffer): PaxRecords {
  const records = parsePax(data);
  if (records === undefined) throw invalid('a PAX header is damaged');
  return records;
}

/** Later records win; an empty value takes an earlier one away (POSIX pax). */
function merge(base: PaxRecords, over: PaxRecords): PaxRecords {
  if (over.size === 0) return base;
  const result = new Map(base);
  for (const [key, value] of over) {
    if (value.length === 0 && !key.includes('.xattr.')) result.delete(key);
    else result.set(key, value);
  }
  return result;
}

/**
 * Records that count until the end of the archive, however many headers they come from: bounded as those of one header, and
 * without the bytes that these came in.
 */
function kept(records: PaxRecords): PaxRecords {
  let bytes = 0;
  for (const [key, value] of records) bytes += key.length + value.length;
  if (records.size > MAX_RECORDS || bytes > MAX_EXTENSION) throw invalid('too many records in global headers');
  return new Map([...records].map(([key, value]) => [key, Buffer.from(value)]));
}

function cString(data: Buffer): string {
  const stop = data.indexOf(0);
  return data.toString('latin1', 0, stop === -1 ? data.length : stop);
}

/** A byte string for a message: printable, and not endless. */
export function quoted(bytes: string): string {
  return JSON.stringify(Buffer.from(bytes, 'latin1').toString('utf8').slice(0, 200));
}

function invalid(message: string): AenvError {
  return new AenvError('image_invalid', `tar archive: ${message}`);
}
