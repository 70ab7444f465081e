import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { decodePax, PAX_MAX, type PaxRecords } from './pax.ts';
import { BLOCK, decodeHeader, type EntryType, paddingOf, type RawHeader, TYPE_FLAGS } from './tar-header.ts';

/** One entry of an archive; its content must be taken, or skipped, before the next one is asked for. */
export interface TarEntry {
  readonly name: string;
  readonly type: EntryType;
  readonly mode: number;
  readonly size: number;
  /** unix seconds with their fraction */
  readonly mtime: number;
  readonly linkName: string;
  content(): AsyncGenerator<Buffer>;
}

const TYPES = new Map<string, EntryType>(Object.entries(TYPE_FLAGS).map(([type, flag]) => [flag, type as EntryType]));
// A contiguous file is read as a file.
TYPES.set('7', 'file');

/**
 * Reads a tar archive (ustar, PAX, GNU long names) with bounded memory, whatever is in it.
 * @throws AenvError `invalid_request` when it is damaged or ends too early; the error of the source
 */
export async function* readTar(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = new ByteSource(source);
  try {
    yield* readEntries(bytes);
  } finally {
    await bytes.close();
  }
}

async function* readEntries(bytes: ByteSource): AsyncGenerator<TarEntry> {
  let pax: PaxRecords = new Map();
  let longName: string | undefined;
  let longLink: string | undefined;
  for (;;) {
    const header = decodeHeader(await bytes.exactly(BLOCK));
    if (header === undefined) throw damaged('a header has a wrong checksum or field');
    // Whatever follows the zero block is padding; it is read, so that the sender can finish.
    if (header === 'end') return await bytes.skipAll();
    switch (header.typeFlag) {
      case 'x':
        pax = decodePax(await readExtension(bytes, header)) ?? fail('a PAX header is damaged');
        continue;
      case 'g':
        await readExtension(bytes, header);
        continue;
      case 'L':
        longName = cText(await readExtension(bytes, header));
        continue;
      case 'K':
        longLink = cText(await readExtension(bytes, header));
        continue;
    }
    const entry = describe(header, pax, longName, longLink);
    pax = new Map();
    longName = undefined;
    longLink = undefined;
    const content = new Content(bytes, entry.size);
    yield { ...entry, content: () => content.take() };
    await content.skip();
  }
}

function describe(
  header: RawHeader,
  pax: PaxRecords,
  longName: string | undefined,
  longLink: string | undefined,
): Omit<TarEntry, 'content'> {
  const name = pax.get('path') ?? longName ?? utf8(header.name);
  const linkName = pax.get('linkpath') ?? longLink ?? utf8(header.linkName);
  let type = TYPES.get(header.typeFlag) ?? fail(`entry '${name}' has the unknown type '${header.typeFlag}'`);
  // Before POSIX, a slash at the end was what made a directory.
  if (type === 'file' && name.endsWith('/')) type = 'directory';
  const size = type === 'file' ? number(pax, 'size', header.size) : 0;
  if (!Number.isSafeInteger(size) || size < 0) fail(`entry '${name}' has an impossible size`);
  return { name, type, mode: header.mode, size, mtime: number(pax, 'mtime', header.mtime), linkName };
}

function number(pax: PaxRecords, key: string, otherwise: number): number {
  const text = pax.get(key);
  if (text === undefined) return otherwise;
  return /^-?\d{1,14}(\.\d{1,12})?$/.test(text) ? Number(text) : fail(`the PAX record ${key} is no number`);
}

async function readExtension(bytes: ByteSource, header: RawHeader): Promise<Buffer> {
  if (header.size > PAX_MAX) fail(`an extended header has ${header.size} bytes`);
  const body = await bytes.exactly(header.size + paddingOf(header.size));
  return body.subarray(0, header.size);
}

class Content {
  readonly #bytes: ByteSource;
  readonly #size: number;
  #left: number;

  constructor(bytes: ByteSource, size: number) {
    this.#bytes = bytes;
    this.#size = size;
    this.#left = size;
  }

  async *take(): AsyncGenerator<Buffer> {
    while (this.#left > 0) {
      const chunk = await this.#bytes.atMost(this.#left);
      this.#left -= chunk.length;
      yield chunk;
    }
  }

  async skip(): Promise<void> {
    for await (const _ of this.take());
    await this.#bytes.exactly(paddingOf(this.#size));
  }
}

class ByteSource {
  readonly #iterator: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#iterator = source[Symbol.asyncIterator]();
  }

  async exactly(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = count; missing > 0; ) {
      const part = await this.atMost(missing);
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  async atMost(count: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#iterator.next();
      if (done === true) throw damaged('the archive ends too early');
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async skipAll(): Promise<void> {
    while ((await this.#iterator.next()).done !== true);
  }

  /** Lets go of the source, whose rest is somebody else's. */
  async close(): Promise<void> {
    await this.#iterator.return?.();
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString();
}

function cText(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

function damaged(message: string): AenvError {
  return new AenvError('invalid_request', `tar: ${message}`);
}

function fail(message: string): never {
  throw damaged(message);
}
