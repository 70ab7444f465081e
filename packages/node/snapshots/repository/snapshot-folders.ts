import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import type { Faults } from './faults.ts';
import { MANIFEST_FILE, type RepositoryFolders } from './layout.ts';
import { Uses } from './locks/uses.ts';
import { exists } from './sweep.ts';

/**
 * The folders of snapshots by their ids, and who uses them. What is removed while it is used is gone for everybody at
 * once, and its files when the last use ends.
 */
export class SnapshotFolders {
  readonly #folders: RepositoryFolders;
  readonly #faults: Faults;
  readonly #uses = new Uses();
  /** ids of those that go with this process */
  readonly #transient = new Set<string>();
  /** ids of those whose removal has begun */
  readonly #ending = new Set<string>();
  /** folders of those that are removed, by id */
  readonly #removed = new Map<string, string>();
  /** files that are needed by earlier uses only, by id */
  readonly #superseded = new Map<string, string>();

  constructor(folders: RepositoryFolders, faults: Faults) {
    this.#folders = folders;
    this.#faults = faults;
  }

  /** Where a new snapshot belongs. */
  placeFor(id: string, isTransient: boolean): string {
    return join(isTransient ? this.#folders.transient : this.#folders.snapshots, id);
  }

  added(id: string, isTransient: boolean): void {
    if (isTransient) this.#transient.add(id);
  }

  /** Folder of a snapshot, whether it is there or not. */
  of(id: string): string {
    return this.placeFor(id, this.#transient.has(id));
  }

  /** Whether an id cannot be given to a new snapshot. */
  async isTaken(id: string): Promise<boolean> {
    return this.#removed.has(id) || (await exists(this.of(id)));
  }

  /** Whether the removal of a snapshot has begun: its manifest is gone, or about to go. */
  isEnding(id: string): boolean {
    return this.#ending.has(id);
  }

  /** Keeps the files of a snapshot until the use ends. */
  use(id: string): () => Promise<void> {
    const end = this.#uses.take(id);
    return async () => {
      if (!end()) return;
      const file = this.#superseded.get(id);
      this.#superseded.delete(id);
      if (file !== undefined) await rm(file, { force: true });
      await this.#removeFiles(id);
    };
  }

  /** A file of a snapshot goes when its last use ends. For one who uses it. */
  supersede(id: string, path: string): void {
    this.#superseded.set(id, path);
  }

  /** Idempotent. @throws AenvError `io_failed` */
  async remove(id: string): Promise<void> {
    const folder = this.of(id);
    if (!(await exists(folder))) return;
    this.#ending.add(id);
    try {
      await this.#faults.hit('snapshot.remove.before_unlink');
      // Without its manifest it is none; the rest may wait.
      await rm(join(folder, MANIFEST_FILE), { force: true });
      await syncFolder(folder);
      await this.#faults.hit('snapshot.remove.after_unlink');
    } catch (error) {
      this.#ending.delete(id);
      throw ioError(error, folder);
    }
    this.#removed.set(id, folder);
    if (!this.#uses.has(id)) await this.#removeFiles(id);
  }

  async #removeFiles(id: string): Promise<void> {
    const folder = this.#removed.get(id);
    if (folder === undefined) return;
    await rm(folder, { recursive: true, force: true });
    this.#removed.delete(id);
    this.#ending.delete(id);
    this.#transient.delete(id);
  }
}
