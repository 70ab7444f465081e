import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink } from 'node:fs/promises';
import { posix } from 'node:path';
import {
  ARCHIVE_REPORT_KEY,
  ARCHIVE_REPORT_MAX,
  ARCHIVE_REPORT_NAME,
  type SkippedEntry,
} from '@aenv/contracts/envd/archive.ts';
import { isStaging } from '../files/staging.ts';
import { errnoOf } from '../filesystem/errors.ts';
import { encodePax } from './pax.ts';
import { BLOCK, type EntryType, encodeHeader, paddingOf, TYPE_FLAGS } from './tar-header.ts';

const CHUNK = 256 * 1024;
const SLASH = Buffer.from('/');
// 8 GiB, the end of eleven octal digits.
const OCTAL_MAX = 0o77777777777;

/** The tree below a folder, or one entry, as a tar archive: see contracts/envd/archive.ts for what is in it. */
export async function* packTree(path: string, kind: 'directory' | 'file'): AsyncGenerator<Buffer> {
  const packer = new Packer();
  if (kind === 'directory') yield* packer.folder(Buffer.from(path), '');
  else yield* packer.entry(Buffer.from(path), posix.basename(path));
  yield* packer.end();
}

class Packer {
  readonly #skipped: SkippedEntry[] = [];
  #reportSize = 0;
  /** first name of each file that has several */
  readonly #links = new Map<string, string>();

  async *folder(folder: Buffer, prefix: string): AsyncGenerator<Buffer> {
    let names: Buffer[];
    try {
      names = await readdir(folder, { encoding: 'buffer' });
    } catch (error) {
      this.#skip(prefix, errnoOf(error) === 'ENOENT' ? 'changed' : 'unreadable');
      return;
    }
    for (const bytes of names.sort(Buffer.compare)) {
      const name = bytes.toString();
      if (isStaging(name)) continue;
      if (Buffer.from(name).equals(bytes)) yield* this.entry(Buffer.concat([folder, SLASH, bytes]), prefix + name);
      else this.#skip(prefix + name, 'name');
    }
  }

  async *entry(path: Buffer, name: string): AsyncGenerator<Buffer> {
    let stats: BigIntStats;
    try {
      stats = await lstat(path, { bigint: true });
    } catch {
      this.#skip(name, 'changed');
      return;
    }
    if (stats.isDirectory()) {
      yield header(`${name}/`, 'directory', stats);
      yield* this.folder(path, `${name}/`);
    } else if (stats.isSymbolicLink()) {
      const target = await readlink(path, { encoding: 'buffer' });
      const text = target.toString();
      if (Buffer.from(text).equals(target)) yield header(name, 'symlink', stats, { linkName: text });
      else this.#skip(name, 'name');
    } else if (stats.isFile()) {
      yield* this.#file(path, name, stats);
    } else {
      this.#skip(name, stats.isFIFO() ? 'fifo' : stats.isSocket() ? 'socket' : 'device');
    }
  }

  async *end(): AsyncGenerator<Buffer> {
    if (this.#skipped.length > 0) {
      const body = Buffer.from(JSON.stringify(this.#skipped));
      yield encodePax(new Map([[ARCHIVE_REPORT_KEY, 'skipped']]));
      yield encodeHeader({
        name: ARCHIVE_REPORT_NAME,
        mode: 0o600,
        size: body.length,
        mtime: 0,
        typeFlag: TYPE_FLAGS.file,
        linkName: '',
      });
      yield Buffer.concat([body, Buffer.alloc(paddingOf(body.length))]);
    }
    yield Buffer.alloc(2 * BLOCK);
  }

  async *#file(path: Buffer, name: string, stats: BigIntStats): AsyncGenerator<Buffer> {
    if (stats.nlink > 1n) {
      const identity = `${stats.dev}:${stats.ino}`;
      const first = this.#links.get(identity);
      if (first !== undefined) {
        yield header(name, 'link', stats, { linkName: first });
        return;
      }
      this.#links.set(identity, name);
    }
    let file: FileHandle;
    try {
      file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      this.#skip(name, 'unreadable');
      return;
    }
    try {
      const size = Number(stats.size);
      yield header(name, 'file', stats, { size });
      yield* this.#content(file, name, size);
      yield Buffer.alloc(paddingOf(size));
    } finally {
      await file.close();
    }
  }

  /** Exactly `size` bytes: that is what the header says. */
  async *#content(file: FileHandle, name: string, size: number): AsyncGenerator<Buffer> {
    let left = size;
    while (left > 0) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, left));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) break;
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    if (left > 0) this.#skip(name, 'changed');
    for (; left > 0; left -= Math.min(CHUNK, left)) yield Buffer.alloc(Math.min(CHUNK, left));
  }

  #skip(path: string, reason: SkippedEntry['reason']): void {
    this.#reportSize += path.length * 4 + 50;
    if (this.#reportSize < ARCHIVE_REPORT_MAX) this.#skipped.push({ path, reason });
  }
}

function header(
  name: string,
  type: EntryType,
  stats: BigIntStats,
  { size = 0, linkName = '' }: { size?: number; linkName?: string } = {},
): Buffer {
  const seconds = stats.mtimeNs / 1_000_000_000n;
  const pax = new Map<string, string>();
  if (needsPax(name)) pax.set('path', name);
  if (needsPax(linkName)) pax.set('linkpath', linkName);
  if (size > OCTAL_MAX) pax.set('size', String(size));
  if (stats.mtimeNs % 1_000_000_000n !== 0n || stats.mtimeNs < 0n) pax.set('mtime', decimalSeconds(stats.mtimeNs));
  const block = encodeHeader({
    name: Buffer.from(name).toString('latin1'),
    mode: Number(stats.mode) & 0o7777,
    size,
    mtime: Number(seconds),
    typeFlag: TYPE_FLAGS[type],
    linkName: Buffer.from(linkName).toString('latin1'),
  });
  return pax.size === 0 ? block : Buffer.concat([encodePax(pax), block]);
}

/** The fields of a header have no charset and end after 100 bytes. */
function needsPax(text: string): boolean {
  return text.length > 100 || /[^\x20-\x7e]/.test(text);
}

function decimalSeconds(nanoseconds: bigint): string {
  const absolute = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  const fraction = String(absolute % 1_000_000_000n).padStart(9, '0');
  return `${nanoseconds < 0n ? '-' : ''}${absolute / 1_000_000_000n}.${fraction}`;
}
