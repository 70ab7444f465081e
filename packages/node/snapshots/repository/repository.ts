import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type {
  CommitOptions,
  DamagedSnapshot,
  GcReport,
  GcRoots,
  HostFacts,
  OpenSnapshot,
  SnapshotDisk,
  SnapshotDraft,
  SnapshotFacts,
  SnapshotManifest,
  SnapshotRepository,
  SnapshotSubject,
  SnapshotVerification,
} from '../contract.ts';
import { adoptSnapshot } from './adopt.ts';
import { baseOf, CHUNK_BYTES } from './bases/memory-base.ts';
import { MemoryBases } from './bases/memory-bases.ts';
import { LocalFolder } from './chunks/local-folder.ts';
import { type Captured, commitDraft } from './commit/commit.ts';
import { Draft } from './commit/draft.ts';
import { mergeDelta } from './commit/merge-delta.ts';
import { isHole, parentBase } from './commit/parent-base.ts';
import { DeltaWriter } from './delta/delta-writer.ts';
import { type Faults, noFaults } from './faults.ts';
import { collectGarbage } from './gc.ts';
import {
  DELTA_FILE,
  isSnapshotId,
  makeRepositoryFolders,
  type RepositoryFolders,
  repositoryFolders,
} from './layout.ts';
import { SharedLock } from './locks/shared-lock.ts';
import { SingleFlight } from './locks/single-flight.ts';
import { Uses } from './locks/uses.ts';
import { readAll, readManifest } from './manifest/shelf.ts';
import { openSnapshot } from './open/open-snapshot.ts';
import { SnapshotFolders } from './snapshot-folders.ts';
import { sweep } from './sweep.ts';
import { verifySnapshot } from './verify.ts';

export interface RepositoryOptions {
  /** folder of its own, on a disk; the parents must let VM processes pass */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads all of a snapshot's disks and compares. */
  readonly verifyDisk: (disk: SnapshotDisk) => Promise<SnapshotVerification>;
  readonly faults?: Faults;
  /** Whether a file that is no base of the repository reads as zeros; by default, whether it is one hole. */
  readonly isZeroFile?: (path: string, sizeBytes: number) => Promise<boolean>;
}

/**
 * Opens the repository of this host. One process has it open at a time: whoever has the home folder.
 * What an earlier process has left half made is removed.
 */
export async function openSnapshotRepository(options: RepositoryOptions): Promise<SnapshotRepository> {
  const folders = repositoryFolders(options.root);
  await makeRepositoryFolders(folders);
  const faults = options.faults ?? noFaults;
  const chunks = await LocalFolder.open(folders.chunks);
  const manifests = await LocalFolder.open(folders.bases);
  const bases = new MemoryBases({ chunks, manifests, folder: folders.memory, faults });
  await bases.sweep();
  const swept = await sweep(folders);
  if (swept > 0) options.log.info('removed snapshots that were not completed', { count: swept });
  return new Repository({ ...options, faults }, folders, bases, chunks, manifests);
}

class Repository implements SnapshotRepository {
  readonly #options: RepositoryOptions & { readonly faults: Faults };
  readonly #folders: RepositoryFolders;
  readonly #bases: MemoryBases;
  readonly #chunks: LocalFolder;
  readonly #baseManifests: LocalFolder;
  /** shared by commits, which find chunks that are there; exclusive for what removes chunks */
  readonly #lock = new SharedLock();
  readonly #baseUses = new Uses();
  readonly #places: SnapshotFolders;
  readonly #merges = new SingleFlight<void>();
  /** ids of drafts */
  readonly #drafts = new Set<string>();

  constructor(
    options: RepositoryOptions & { readonly faults: Faults },
    folders: RepositoryFolders,
    bases: MemoryBases,
    chunks: LocalFolder,
    baseManifests: LocalFolder,
  ) {
    this.#options = options;
    this.#folders = folders;
    this.#places = new SnapshotFolders(folders, options.faults);
    this.#bases = bases;
    this.#chunks = chunks;
    this.#baseManifests = baseManifests;
  }

  async begin(of: SnapshotSubject): Promise<SnapshotDraft> {
    const { id } = of;
    if (!isSnapshotId(id)) throw new RangeError(`not an id of a snapshot: ${id}`);
    if (this.#drafts.has(id)) throw new AenvError('snapshot_exists', `snapshot ${id} is being made`);
    this.#drafts.add(id);
    await using taken = new Rollback();
    taken.add(() => void this.#drafts.delete(id));
    if (await this.#places.isTaken(id)) {
      throw new AenvError('snapshot_exists', `snapshot ${id} exists, or is still in use`);
    }
    const { isZeroFile = isHole, faults } = this.#options;
    const parent = await parentBase(this.#bases, of, isZeroFile);
    const release = this.#baseUses.take(parent.digest);
    taken.add(() => void release());
    const folder = join(this.#folders.drafts, randomUUID());
    await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
      throw ioError(error, folder);
    });
    taken.add(() => rm(folder, { recursive: true, force: true }));
    await faults.hit('snapshot.begin.folder_made');
    const delta = await DeltaWriter.create({
      path: join(folder, DELTA_FILE),
      memoryBytes: parent.sizeBytes,
      isZeroInBase: (offset, length) => {
        const end = Math.floor((offset + length - 1) / CHUNK_BYTES);
        for (let i = Math.floor(offset / CHUNK_BYTES); i <= end; i++) if (parent.chunks.has(i)) return false;
        return true;
      },
    });
    taken.add(() => delta.close());
    const captured = { id, folder, parent, delta };
    const commit = (facts: SnapshotFacts, options: CommitOptions) => this.#commit(captured, facts, options);
    return new Draft({ captured, faults, commit, taken: taken.keep() });
  }

  async get(id: string): Promise<SnapshotManifest> {
    if (!isSnapshotId(id)) throw new AenvError('snapshot_not_found', `no snapshot ${id}`);
    return readManifest(this.#places.of(id), id);
  }

  async list(): Promise<readonly SnapshotManifest[]> {
    return (await this.#readAll()).manifests;
  }

  async damaged(): Promise<readonly DamagedSnapshot[]> {
    return (await this.#readAll()).damaged;
  }

  async open(id: string, host: HostFacts): Promise<OpenSnapshot> {
    await using taken = new Rollback();
    taken.add(this.#places.use(id));
    let manifest: SnapshotManifest;
    let read = await this.get(id);
    do {
      manifest = read;
      const release = this.#baseUses.take(baseOf(manifest));
      taken.add(() => void release());
      // Again: before the use began, it may have been removed and its base collected, or its delta merged.
      read = await this.get(id);
    } while (baseOf(read) !== baseOf(manifest));
    const opened = await openSnapshot(this.#bases, manifest, this.#places.of(id), host);
    taken.add(() => opened.close());
    const owned = taken.keep();
    return { ...opened, close: () => owned.run() };
  }

  adopt(root: string, id: string): Promise<SnapshotManifest> {
    if (!isSnapshotId(id)) throw new RangeError(`not an id of a snapshot: ${id}`);
    return this.#lock.shared(async () => {
      const from = repositoryFolders(root);
      const stores = [await LocalFolder.open(from.chunks), await LocalFolder.open(from.bases)] as const;
      const bases = new MemoryBases({
        ...{ chunks: stores[0], manifests: stores[1], folder: from.memory, faults: this.#options.faults },
      });
      return await adoptSnapshot({ folders: this.#folders, bases: this.#bases }, { root, bases }, id);
    });
  }

  async mergeDelta(id: string, pace?: () => Promise<void>): Promise<void> {
    await this.get(id);
    const endUse = this.#places.use(id);
    try {
      const isRemoved = () => this.#places.isEnding(id);
      const parts = {
        bases: this.#bases,
        faults: this.#options.faults,
        isRemoved,
        ...(pace === undefined ? {} : { pace }),
      };
      await this.#merges.run(id, async () => {
        const delta = await this.#lock.shared(() => mergeDelta(parts, this.#places.of(id), id));
        if (delta !== undefined) this.#places.supersede(id, delta);
      });
    } finally {
      await endUse();
    }
  }

  async remove(id: string): Promise<void> {
    if (isSnapshotId(id)) await this.#places.remove(id);
  }

  async verify(id: string): Promise<SnapshotVerification> {
    if (!isSnapshotId(id)) throw new AenvError('snapshot_not_found', `no snapshot ${id}`);
    const endUse = this.#places.use(id);
    try {
      const parts = { bases: this.#bases, chunks: this.#chunks, folders: this.#folders, ...this.#options };
      return await verifySnapshot(parts, this.#places.of(id), id);
    } finally {
      await endUse();
    }
  }

  gc(roots: GcRoots): Promise<GcReport> {
    const { faults } = this.#options;
    return this.#lock.exclusive(async () => {
      const parts = { bases: this.#bases, chunks: this.#chunks, baseManifests: this.#baseManifests, faults };
      return collectGarbage({ ...parts, baseUses: this.#baseUses }, () => this.#readAll(), roots);
    });
  }

  async close(): Promise<void> {
    await this.#lock.exclusive(async () => {});
  }

  #commit(captured: Captured, facts: SnapshotFacts, options: CommitOptions): Promise<SnapshotManifest> {
    const { id } = captured;
    const { clock, faults } = this.#options;
    const isTransient = options.durable === false;
    return this.#lock.shared(async () => {
      const parts = { bases: this.#bases, clock, faults };
      const manifest = await commitDraft(parts, captured, facts, options, this.#places.placeFor(id, isTransient));
      this.#places.added(id, isTransient);
      return manifest;
    });
  }

  #readAll(): ReturnType<typeof readAll> {
    return readAll([this.#folders.snapshots, this.#folders.transient]);
  }
}
