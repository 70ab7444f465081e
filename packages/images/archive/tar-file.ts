import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { posix } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isCode } from '../errors/is-code.ts';
import { BLOCK, isZeroBlock, parseHeader } from '../tar/header.ts';
import { parsePax } from '../tar/pax.ts';

interface Place {
  readonly offset: number;
  readonly size: number;
}

const MAX_MEMBERS = 20_000;
const MAX_EXTENSION = 64 * 1024;
const MAX_LINKS = 8;

/**
 * An uncompressed tar archive of which single files are read, without unpacking it. Only their places are kept; the file
 * is opened for each read.
 */
export class TarFile {
  readonly path: string;
  readonly #files: ReadonlyMap<string, Place>;
  readonly #links: ReadonlyMap<string, string>;

  private constructor(path: string, files: ReadonlyMap<string, Place>, links: ReadonlyMap<string, string>) {
    this.path = path;
    this.#files = files;
    this.#links = links;
  }

  /** @throws AenvError `image_invalid` when it is missing, compressed or no archive */
  static async open(path: string, signal?: AbortSignal): Promise<TarFile> {
    const files = new Map<string, Place>();
    const links = new Map<string, string>();
    try {
      await using file = await open(path, 'r');
      const { size } = await file.stat();
      for await (const member of members(file, size, path)) {
        signal?.throwIfAborted();
        if (files.size + links.size >= MAX_MEMBERS) throw invalid(path, `it has more than ${MAX_MEMBERS} members`);
        const name = posix.normalize(member.name).replace(/^\/+/, '');
        if (member.link === undefined) files.set(name, member);
        else links.set(name, member.link);
      }
    } catch (error) {
      if (isCode(error, 'ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES')) throw invalid(path, 'it cannot be read', error);
      throw error;
    }
    return new TarFile(path, files, links);
  }

  /** @returns undefined when there is no such file in the archive */
  size(name: string): number | undefined {
    return this.#place(name)?.size;
  }

  /** @throws AenvError `image_invalid` when there is no such file */
  async *read(name: string, signal?: AbortSignal): AsyncGenerator<Buffer> {
    const place = this.#place(name);
    if (place === undefined) throw invalid(this.path, `${JSON.stringify(name.slice(0, 200))} is missing in it`);
    if (place.size === 0) return;
    const end = place.offset + place.size - 1;
    const stream = createReadStream(this.path, { start: place.offset, end, highWaterMark: 256 * 1024 });
    try {
      for await (const chunk of stream) {
        signal?.throwIfAborted();
        yield chunk as Buffer;
      }
    } finally {
      stream.destroy();
    }
  }

  /** Links within the archive are followed: programs write a layer that occurs twice as one. */
  #place(name: string): Place | undefined {
    let current = posix.normalize(name);
    for (let count = 0; count < MAX_LINKS; count++) {
      const target = this.#links.get(current);
      if (target === undefined) return this.#files.get(current);
      current = target;
    }
    return undefined;
  }
}

interface Member extends Place {
  readonly name: string;
  /** normal path in the archive that a link leads to */
  readonly link: string | undefined;
}

async function* members(file: FileHandle, fileSize: number, path: string): AsyncGenerator<Member> {
  const block = Buffer.alloc(BLOCK);
  await file.read(block, 0, BLOCK, 0);
  if (isCompressed(block)) {
    throw invalid(path, 'it is compressed', undefined, 'Decompress it first, for example with gunzip or zstd -d.');
  }
  let long: { name?: string | undefined; link?: string | undefined; size?: number | undefined } = {};
  for (let at = 0; at + BLOCK <= fileSize; ) {
    await file.read(block, 0, BLOCK, at);
    if (isZeroBlock(block)) return;
    const header = parseHeader(block);
    if ('problem' in header) throw invalid(path, header.problem);
    const body = at + BLOCK;
    const size = 'xLKg'.includes(header.flag) ? header.size : (long.size ?? header.size);
    if (body + size > fileSize) throw invalid(path, 'it ends in the middle of a file');
    at = body + Math.ceil(size / BLOCK) * BLOCK;
    if ('xLK'.includes(header.flag)) {
      long = { ...long, ...(await extension(file, header.flag, body, size, path)) };
      continue;
    }
    const name = long.name ?? header.name;
    const linkName = long.link ?? header.linkName;
    long = {};
    if (header.flag === '0' || header.flag === '7') yield { name, offset: body, size, link: undefined };
    else if (header.flag === '1') yield { name, offset: 0, size: 0, link: posix.normalize(linkName) };
    else if (header.flag === '2') {
      yield { name, offset: 0, size: 0, link: posix.normalize(posix.join(posix.dirname(name), linkName)) };
    }
  }
}

async function extension(file: FileHandle, flag: string, offset: number, size: number, path: string) {
  if (size > MAX_EXTENSION) throw invalid(path, `an extended header holds ${size} bytes`);
  const data = Buffer.alloc(size);
  await file.read(data, 0, size, offset);
  const text = data.toString('utf8').replace(/\0.*$/s, '');
  if (flag === 'L') return { name: text };
  if (flag === 'K') return { link: text };
  const records = parsePax(data);
  if (records === undefined) throw invalid(path, 'a PAX header is damaged');
  const bytes = records.get('size')?.toString('latin1');
  if (bytes !== undefined && !/^\d{1,15}$/.test(bytes))
    throw invalid(path, 'a PAX header has a size that is no number');
  return {
    ...(records.has('path') ? { name: records.get('path')?.toString('utf8') } : {}),
    ...(records.has('linkpath') ? { link: records.get('linkpath')?.toString('utf8') } : {}),
    ...(bytes === undefined ? {} : { size: Number(bytes) }),
  };
}

function isCompressed(head: Buffer): boolean {
  const magic = head.toString('latin1', 0, 6);
  return ['\x1f\x8b', '\x28\xb5\x2f\xfd', 'BZh', '\xfd7zXZ\0'].some((start) => magic.startsWith(start));
}

function invalid(path: string, why: string, cause?: unknown, remediation?: string): AenvError {
  return new AenvError('image_invalid', `image archive ${path}: ${why}`, {
    cause,
    ...(remediation === undefined ? {} : { remediation }),
  });
}
