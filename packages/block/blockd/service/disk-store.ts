import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { RecordFolder } from '../records/record-folder.ts';
import type { DiskRecord } from '../records/schema.ts';
import type { ThreadHandle } from '../threads/thread-handle.ts';
import { Disk } from './disk.ts';
import type { LayerStore } from './layer-store.ts';
import { layersOfDisk } from './references.ts';

/** The disks of a node: their records, the layers that these refer to, and the threads that have them open. */
export class DiskStore {
  readonly #records: RecordFolder<DiskRecord>;
  readonly #layers: LayerStore;
  readonly #threads: readonly ThreadHandle[];
  readonly #log: Logger;
  readonly #disks = new Map<string, Disk>();

  constructor(records: RecordFolder<DiskRecord>, layers: LayerStore, threads: readonly ThreadHandle[], log: Logger) {
    this.#records = records;
    this.#layers = layers;
    this.#threads = threads;
    this.#log = log;
  }

  all(): readonly Disk[] {
    return [...this.#disks.values()];
  }

  /** Names of all, also of those whose record is damaged. */
  names(): string[] {
    return [...this.#disks.keys(), ...this.#records.damaged.keys()].sort();
  }

  has(id: string): boolean {
    return this.#disks.has(id) || this.#records.damaged.has(id);
  }

  isDamaged(id: string): boolean {
    return this.#records.damaged.has(id);
  }

  /** @throws AenvError `ledger_failed` when its record is damaged, `internal` when there is none: the node knows its disks */
  get(id: string): Disk {
    this.#records.requireSound(id);
    const disk = this.#disks.get(id);
    if (disk === undefined) throw new AenvError('internal', `there is no disk ${id}`);
    return disk;
  }

  /** Reads the records of an earlier daemon. Nothing is open yet. @returns why some cannot be used */
  async load(): Promise<readonly AenvError[]> {
    for (const record of await this.#records.load()) {
      this.#layers.use(layersOfDisk(record));
      this.#disks.set(record.disk, new Disk(record));
    }
    return [...this.#records.damaged.values()];
  }

  /** Opens and serves the disks that were served when the last daemon ended. One that cannot be is reported. */
  async resume(): Promise<void> {
    const resuming = this.all().map((disk) =>
      disk.serial.run(async () => {
        const { socket } = disk.record;
        if (socket === null) return;
        // Folders of sockets are in memory: after a restart of the host there is nobody to be served.
        const folder = await stat(dirname(socket)).catch(() => undefined);
        if (folder === undefined) return this.put(disk, { ...disk.record, socket: null });
        try {
          await (await this.open(disk)).call('attach', { disk: disk.id, socket });
        } catch (error) {
          this.#log.error('a disk cannot be served again', { disk: disk.id, error });
        }
      }),
    );
    await Promise.all(resuming);
  }

  /** Adds a disk that is open already. @throws as the write does; then it is not there */
  async add(disk: Disk): Promise<void> {
    if (this.#disks.has(disk.id)) throw new AenvError('internal', `there is a disk ${disk.id} already`);
    this.#disks.set(disk.id, disk);
    this.#layers.use(layersOfDisk(disk.record));
    try {
      await this.#records.put(disk.id, disk.record);
    } catch (error) {
      await this.drop(disk);
      throw error;
    }
  }

  /**
   * Changes what is kept of a disk, at once in memory. Layers that it does not refer to any more go when that is on stable
   * storage.
   */
  async put(disk: Disk, record: DiskRecord): Promise<void> {
    disk.stale = [...disk.stale, ...layersOfDisk(disk.record)];
    this.#layers.use(layersOfDisk(record));
    disk.record = record;
    await this.#records.put(disk.id, record);
    await this.#releaseStale(disk);
  }

  /** Closes a disk and removes all that is its own. */
  async drop(disk: Disk): Promise<void> {
    await this.close(disk);
    await this.#records.remove(disk.id);
    this.#disks.delete(disk.id);
    await this.#layers.release(layersOfDisk(disk.record));
    await this.#releaseStale(disk);
  }

  /** Removes a disk whose record is damaged: what it had goes with the next start, when all uses are known. */
  async dropDamaged(id: string): Promise<void> {
    await this.#records.remove(id);
  }

  async #releaseStale(disk: Disk): Promise<void> {
    const { stale } = disk;
    disk.stale = [];
    await this.#layers.release(stale);
  }

  /** The thread that has a disk open, after it has been opened if need be. */
  async open(disk: Disk): Promise<ThreadHandle> {
    if (disk.thread !== undefined) return disk.thread;
    const thread = this.#threads.reduce((least, next) => (next.disks.size < least.disks.size ? next : least));
    const { sizeBytes, durability, layers, uppers } = disk.record;
    const opened = await thread.call('open', { disk: disk.id, sizeBytes, durability, layers, uppers });
    disk.thread = thread;
    disk.prepared = opened.uppers.length > 1;
    thread.disks.add(disk.id);
    if (opened.uppers.length !== uppers.length || opened.layers.length !== layers.length) {
      await this.put(disk, { ...disk.record, layers: [...opened.layers], uppers: [...opened.uppers] });
    }
    return thread;
  }

  async close(disk: Disk): Promise<void> {
    const { thread } = disk;
    disk.thread = undefined;
    thread?.disks.delete(disk.id);
    await thread?.call('close', { disk: disk.id });
  }
}
