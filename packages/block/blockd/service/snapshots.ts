import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { RecordFolder } from '../records/record-folder.ts';
import type { SnapshotRecord } from '../records/schema.ts';
import type { LayerStore } from './layer-store.ts';
import { layersOfSnapshot } from './references.ts';

/** What disks were at some moment. A snapshot that is taken counts when it is on stable storage, and not before. */
export class Snapshots {
  readonly #records: RecordFolder<SnapshotRecord>;
  readonly #layers: LayerStore;
  readonly #settled = new Map<string, SnapshotRecord>();
  /** also those that failed, until they are removed: why, somebody may ask later */
  readonly #taking = new Map<string, Promise<SnapshotRecord>>();

  constructor(records: RecordFolder<SnapshotRecord>, layers: LayerStore) {
    this.#records = records;
    this.#layers = layers;
  }

  /** Reads the records of an earlier daemon. @returns why some cannot be used */
  async load(): Promise<readonly AenvError[]> {
    for (const record of await this.#records.load()) {
      this.#layers.use(layersOfSnapshot(record));
      this.#settled.set(record.snapshot, record);
    }
    return [...this.#records.damaged.values()];
  }

  /** Names of all that are on stable storage, also of those whose record is damaged. */
  list(): string[] {
    return [...this.#settled.keys(), ...this.#records.damaged.keys()].sort();
  }

  has(snapshot: string): boolean {
    return this.#settled.has(snapshot) || this.#taking.has(snapshot) || this.#records.damaged.has(snapshot);
  }

  /**
   * Keeps the layers of a snapshot from now on.
   * @param sealed resolves when all of them are on stable storage
   */
  take(record: SnapshotRecord, sealed: Promise<unknown>): void {
    const { snapshot } = record;
    const layers = layersOfSnapshot(record);
    this.#layers.use(layers);
    const taking = sealed
      .then(() => this.#records.put(snapshot, record))
      .then(
        () => {
          this.#settled.set(snapshot, record);
          this.#taking.delete(snapshot);
          return record;
        },
        async (error: unknown) => {
          await this.#layers.release(layers);
          throw error;
        },
      );
    this.#taking.set(snapshot, taking);
    // Whoever waits for it is told.
    taking.catch(() => {});
  }

  /**
   * The record, when all of the snapshot is on stable storage.
   * @throws AenvError `ledger_failed` when it is damaged, `internal` when there is none, or what kept it from getting there: then there is none any more
   */
  async settle(snapshot: string): Promise<SnapshotRecord> {
    const record = (await this.#taking.get(snapshot)) ?? this.#settled.get(snapshot);
    if (record !== undefined) return record;
    this.#records.requireSound(snapshot);
    throw new AenvError('internal', `there is no snapshot ${snapshot}`);
  }

  /** No error when there is none. */
  async remove(snapshot: string): Promise<void> {
    await this.#taking.get(snapshot)?.catch(() => {});
    this.#taking.delete(snapshot);
    const record = this.#settled.get(snapshot);
    // What a damaged one had goes with the next start, when all uses are known.
    if (record === undefined) return this.#records.damaged.has(snapshot) ? this.#records.remove(snapshot) : undefined;
    this.#settled.delete(snapshot);
    await this.#records.remove(snapshot);
    await this.#layers.release(layersOfSnapshot(record));
  }

  /** Waits for those under way, whatever becomes of them. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#taking.values());
  }
}
