import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { MemorySink } from '@aenv/vmm/contract/micro-vm.ts';
import type { ChunkStore } from '../chunks/contract.ts';
import { fetchChunk } from '../chunks/memory-chunks.ts';
import { corrupt } from '../corrupt.ts';
import type { Faults } from '../faults.ts';
import { inParallel } from '../in-parallel.ts';
import { SingleFlight } from '../locks/single-flight.ts';
import { exists } from '../sweep.ts';
import { BaseFile, TEMPORARY } from './base-file.ts';
import { buildBase, PARALLEL } from './build-base.ts';
import { checkBaseFile } from './check-file.ts';
import { baseManifestName, CHUNK_BYTES, chunkSize, describeBase, type MemoryBase, parseBase } from './memory-base.ts';
import { VerifiedFiles } from './verified-files.ts';

const FILE_NAME = /^([0-9a-f]{64})\.mem$/;

export interface MemoryBasesOptions {
  /** contents */
  readonly chunks: ChunkStore;
  /** the bases' own manifests */
  readonly manifests: ChunkStore;
  /** of the files that VMs map */
  readonly folder: string;
  readonly faults: Faults;
}

/**
 * Memory bases: what they are made of is in the chunk store; the file that VMs map is a copy of this host, made when it
 * is first needed. A file is immutable, and its name is never given to another one while it is there.
 */
export class MemoryBases {
  readonly #options: MemoryBasesOptions;
  readonly #verified = new VerifiedFiles();
  readonly #files = new SingleFlight<string>();

  constructor(options: MemoryBasesOptions) {
    this.#options = options;
  }

  /** Path of a base's file, whether it is there or not. */
  pathOf(digest: string): string {
    return join(this.#options.folder, `${digest}.mem`);
  }

  /** The base whose file this is, undefined for any other file. */
  digestOf(path: string): string | undefined {
    return dirname(path) === this.#options.folder ? FILE_NAME.exec(basename(path))?.[1] : undefined;
  }

  /** @throws AenvError `snapshot_corrupt` */
  async load(digest: string): Promise<MemoryBase> {
    const bytes = await this.#options.manifests.get(digest);
    if (bytes === undefined) throw corrupt(baseManifestName(digest), 'it is missing');
    return parseBase(bytes, digest);
  }

  /** Keeps the manifest of a base whose chunks are kept. */
  async save(base: MemoryBase): Promise<void> {
    const [{ digest }, bytes] = describeBase(base.sizeBytes, base.chunks);
    await this.#options.manifests.put(digest, bytes);
  }

  /**
   * The file of a base, every byte of it checked.
   * @throws AenvError `snapshot_corrupt`, `no_space`, `io_failed`
   */
  file(base: MemoryBase): Promise<string> {
    return this.#files.run(base.digest, async () => {
      const path = this.pathOf(base.digest);
      if (await this.#verified.has(path)) return path;
      if (await exists(path)) await checkBaseFile(path, base);
      else await this.#materialise(base, path);
      await this.#verified.add(path);
      return path;
    });
  }

  /**
   * A new base: another one with the pages that differ from it. All of it is durable when it resolves.
   * @param pace nobody waits for it, and this is waited for before each part
   */
  async derive(
    parent: MemoryBase,
    give: (sink: MemorySink) => Promise<void>,
    pace?: () => Promise<void>,
  ): Promise<MemoryBase> {
    const { folder, chunks, manifests, faults } = this.#options;
    const parentFile = parent.chunks.size === 0 ? {} : { parentFile: await this.file(parent) };
    await using file = await BaseFile.create(folder, randomUUID(), parent.sizeBytes, parentFile.parentFile);
    const [base, bytes] = await buildBase({
      ...{ parent, give, chunks, file, faults },
      ...parentFile,
      ...(pace === undefined ? {} : { pace }),
    });
    await faults.hit('snapshot.commit.base_file_written');
    await manifests.put(base.digest, bytes);
    await this.#files.run(base.digest, async () => {
      const path = this.pathOf(base.digest);
      if (await exists(path)) return path;
      await file.finish(path, () => {});
      await this.#verified.add(path);
      return path;
    });
    await faults.hit('snapshot.commit.base_saved');
    return base;
  }

  /**
   * Removes the file of a base, unless it is in use.
   * @returns bytes that it occupied; undefined if it is still there
   */
  async removeFile(digest: string, isInUse: () => boolean): Promise<number | undefined> {
    const path = this.pathOf(digest);
    await this.#files.idle(digest);
    const found = await stat(path).catch(() => undefined);
    // At once, so that nobody begins to use it between the look and the removal.
    if (isInUse()) return undefined;
    this.#verified.forget(path);
    rmSync(path, { force: true });
    return (found?.blocks ?? 0) * 512;
  }

  /** Digests of the bases that have a file here. */
  async files(): Promise<string[]> {
    return (await readdir(this.#options.folder)).flatMap((name) => FILE_NAME.exec(name)?.[1] ?? []);
  }

  /** Removes files that an earlier process was making. */
  async sweep(): Promise<void> {
    const { folder } = this.#options;
    for (const name of await readdir(folder)) {
      if (name.endsWith(TEMPORARY)) await rm(join(folder, name));
    }
  }

  async #materialise(base: MemoryBase, path: string): Promise<void> {
    const { folder, chunks, faults } = this.#options;
    await using file = await BaseFile.create(folder, randomUUID(), base.sizeBytes);
    await inParallel(base.chunks, PARALLEL, async ([index, digest]) => {
      const chunk = await fetchChunk(chunks, digest, chunkSize(base.sizeBytes, index));
      await file.write(chunk, index * CHUNK_BYTES);
    });
    await file.finish(path, () => faults.hit('snapshot.materialise.before_rename'));
  }
}
