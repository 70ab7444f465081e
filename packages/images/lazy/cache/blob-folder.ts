import { type FileHandle, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import { isCode } from '../../errors/is-code.ts';
import { requireDigest } from '../../oci/digest.ts';
import { Chunk } from './chunk.ts';
import {
  type ChunkParts,
  chunksOf,
  decodeEntry,
  decodeHeader,
  ENTRY,
  encodeEntry,
  encodeHeader,
  type IndexHeader,
} from './index-entry.ts';

export const INDEX = 'index';

/** Name of the folder of a blob. */
export function folderName(digest: string): string {
  const { algorithm, hex } = requireDigest(digest);
  return `${algorithm}-${hex}`;
}

/** The files of one blob in the cache: an index, and a file for each chunk of which something is there. */
export class BlobFolder {
  readonly path: string;
  readonly #chunks = new Map<number, Chunk>();
  #header: IndexHeader;

  private constructor(path: string, header: IndexHeader) {
    this.path = path;
    this.#header = header;
  }

  get header(): IndexHeader {
    return this.#header;
  }

  get chunks(): Iterable<Chunk> {
    return this.#chunks.values();
  }

  /** A folder in which nothing is known. */
  static async create(root: string, digest: string, size: number): Promise<BlobFolder> {
    const path = join(root, folderName(digest));
    const header = { digest, size, verified: false };
    await mkdir(path, { mode: 0o700, recursive: true });
    await writeDurable(join(path, INDEX), encodeHeader(header), 0o600);
    return new BlobFolder(path, header);
  }

  /**
   * Reads what is there. Files that the index does not know are removed.
   * @returns undefined when the folder has no index that can be used
   */
  static async load(path: string): Promise<BlobFolder | undefined> {
    const index = await readFile(join(path, INDEX)).catch((error: unknown) => {
      if (isCode(error, 'ENOENT', 'ENOTDIR')) return Buffer.alloc(0);
      throw error;
    });
    const header = decodeHeader(index.subarray(0, ENTRY));
    if (header === undefined || basename(path) !== folderName(header.digest)) return undefined;
    const folder = new BlobFolder(path, header);
    for (let number = 0; number < chunksOf(header.size); number++) {
      const at = ENTRY * (number + 1);
      const parts = decodeEntry(index.subarray(at, at + ENTRY));
      if (parts !== undefined) folder.#add(number, parts);
    }
    await folder.#removeUnknown();
    return folder;
  }

  /** The chunk of a number, which is made when nothing is known of it. */
  chunk(number: number): Chunk {
    return this.#chunks.get(number) ?? this.#add(number);
  }

  known(number: number): Chunk | undefined {
    return this.#chunks.get(number);
  }

  /** Writes what is known of chunks to the index. */
  async writeEntries(entries: readonly { readonly number: number; readonly parts: ChunkParts }[]): Promise<void> {
    await using index = await open(join(this.path, INDEX), 'r+');
    for (const { number, parts } of entries) await writeBlock(index, number + 1, encodeEntry(parts));
    await index.datasync();
  }

  async setVerified(): Promise<void> {
    this.#header = { ...this.#header, verified: true };
    await using index = await open(join(this.path, INDEX), 'r+');
    await writeBlock(index, 0, encodeHeader(this.#header));
    await index.datasync();
  }

  async remove(): Promise<void> {
    this.#chunks.clear();
    await rm(this.path, { recursive: true, force: true });
  }

  #add(number: number, parts?: ChunkParts): Chunk {
    const chunk = new Chunk(number, join(this.path, chunkName(number)), parts);
    this.#chunks.set(number, chunk);
    return chunk;
  }

  async #removeUnknown(): Promise<void> {
    const expected = new Set([INDEX]);
    for (const chunk of this.#chunks.values()) if (chunk.bytes > 0) expected.add(chunkName(chunk.number));
    for (const name of await readdir(this.path)) {
      if (!expected.has(name)) await rm(join(this.path, name), { recursive: true, force: true });
    }
  }
}

export function chunkName(number: number): string {
  return `chunk-${String(number).padStart(6, '0')}`;
}

async function writeBlock(file: FileHandle, at: number, block: Buffer): Promise<void> {
  await writeFully(file, block, at * ENTRY);
}
