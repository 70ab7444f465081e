import { randomUUID } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { OperationRequest, OperationResult } from '../control/messages.ts';
import type { BlockdFolders } from '../layout.ts';
import { RecordFolder } from '../records/record-folder.ts';
import { type DiskLayer, DiskRecord, SnapshotRecord } from '../records/schema.ts';
import type { ThreadHandle } from '../threads/thread-handle.ts';
import { type CompactionLimits, Compactor } from './compactor.ts';
import { Disk } from './disk.ts';
import { DiskStore } from './disk-store.ts';
import { LayerStore } from './layer-store.ts';
import { Snapshots } from './snapshots.ts';
import { prepareSwap, sealedAfterSwap, swapUpper } from './swap.ts';

export interface DiskServiceOptions {
  readonly folders: BlockdFolders;
  readonly threads: readonly ThreadHandle[];
  readonly limits: CompactionLimits;
  /** time between two looks for garbage, in `ms` */
  readonly lookMs: number;
  readonly log: Logger;
}

/** Disks and snapshots as the control socket offers them. */
export class DiskService {
  readonly #options: DiskServiceOptions;
  readonly #layers: LayerStore;
  readonly #disks: DiskStore;
  readonly #snapshots: Snapshots;
  readonly #compactor: Compactor;
  readonly #timer: NodeJS.Timeout;
  #swaps = 0;

  private constructor(options: DiskServiceOptions) {
    const { folders, threads, limits, lookMs, log } = options;
    this.#options = options;
    this.#layers = new LayerStore(folders, log);
    this.#disks = new DiskStore(new RecordFolder(folders.disks, DiskRecord), this.#layers, threads, log);
    this.#snapshots = new Snapshots(new RecordFolder(folders.snapshots, SnapshotRecord), this.#layers);
    this.#compactor = new Compactor(limits, this.#disks, this.#layers, log);
    this.#timer = setInterval(() => {
      for (const disk of this.#disks.all()) this.#compactor.consider(disk);
    }, lookMs);
    this.#timer.unref();
  }

  /** Reads the records, removes what none of them refers to, and serves again the disks that were served. */
  static async open(options: DiskServiceOptions): Promise<DiskService> {
    const service = new DiskService(options);
    const damaged = [...(await service.#disks.load()), ...(await service.#snapshots.load())];
    for (const error of damaged)
      options.log.error('a record is damaged; nothing that it may refer to is removed', { error });
    if (damaged.length > 0) await service.#layers.useAll();
    const removed = await service.#layers.removeUnused();
    if (removed > 0) options.log.info('layers that nobody refers to were removed', { layers: removed });
    await service.#disks.resume();
    return service;
  }

  async create(request: OperationRequest<'create'>): Promise<OperationResult<'create'>> {
    const { disk: id, origin, sizeBytes, durability } = request;
    if (this.#disks.has(id)) throw new AenvError('internal', `there is a disk ${id} already`);
    const layers: DiskLayer[] =
      origin.kind === 'layers' ? [...origin.layers] : (await this.#snapshots.settle(origin.snapshot)).layers;
    const upper = randomUUID();
    const disk = new Disk({ version: 1, disk: id, sizeBytes, durability, layers, uppers: [upper], socket: null });
    const [thread] = this.#options.threads;
    if (thread === undefined) throw new AenvError('internal', 'no thread serves disks');
    await disk.serial.run(async () => {
      this.#layers.use([upper]);
      try {
        await thread.call('createLayer', { layer: upper, sizeBytes });
        await this.#disks.add(disk);
        // Now, and not when a VM boots, a layer that is damaged is found.
        await this.#disks.open(disk).catch(async (error: unknown) => {
          await this.#disks.drop(disk);
          throw error;
        });
      } finally {
        await this.#layers.release([upper]);
      }
    });
    return {};
  }

  attach({ disk: id, socket }: OperationRequest<'attach'>): Promise<OperationResult<'attach'>> {
    const disk = this.#disks.get(id);
    return disk.serial.run(async () => {
      const thread = await this.#disks.open(disk);
      await thread.call('attach', { disk: id, socket });
      await this.#disks.put(disk, { ...disk.record, socket });
      return { export: id };
    });
  }

  detach({ disk: id }: OperationRequest<'detach'>): Promise<OperationResult<'detach'>> {
    const disk = this.#disks.get(id);
    return disk.serial.run(async () => {
      await disk.thread?.call('detach', { disk: id });
      await this.#disks.put(disk, { ...disk.record, socket: null });
      return {};
    });
  }

  async remove({ disk: id }: OperationRequest<'remove'>): Promise<OperationResult<'remove'>> {
    if (!this.#disks.has(id)) return {};
    if (this.#disks.isDamaged(id)) {
      await this.#disks.dropDamaged(id);
      return {};
    }
    const disk = this.#disks.get(id);
    await disk.serial.run(async () => {
      if (this.#disks.has(id)) await this.#disks.drop(disk);
    });
    return {};
  }

  list(): OperationResult<'list'> {
    return { disks: this.#disks.names() };
  }

  prepareSnapshot({ disk: id }: OperationRequest<'prepareSnapshot'>): Promise<OperationResult<'prepareSnapshot'>> {
    const disk = this.#disks.get(id);
    return disk.serial.run(async () => {
      await prepareSwap(this.#disks, disk);
      return {};
    });
  }

  snapshot({ disk: id, snapshot }: OperationRequest<'snapshot'>): Promise<OperationResult<'snapshot'>> {
    const disk = this.#disks.get(id);
    const answer = Promise.withResolvers<OperationResult<'snapshot'>>();
    disk.serial
      .run(async () => {
        if (this.#snapshots.has(snapshot)) throw new AenvError('internal', `there is a snapshot ${snapshot} already`);
        const { layer, layers, ms, stored } = await swapUpper(this.#disks, disk);
        this.#swaps++;
        const record = { version: 1 as const, snapshot, sizeBytes: disk.record.sizeBytes, layers: [...layers] };
        this.#snapshots.take(record, Promise.all([stored, sealedAfterSwap(disk, layer)]));
        // The VM need not wait for the record.
        answer.resolve({ swapMs: ms });
        await stored;
        this.#compactor.consider(disk);
      })
      .catch(answer.reject);
    return answer.promise;
  }

  async settleSnapshot(request: OperationRequest<'settleSnapshot'>): Promise<OperationResult<'settleSnapshot'>> {
    const { sizeBytes, layers } = await this.#snapshots.settle(request.snapshot);
    return { sizeBytes, layers };
  }

  async removeSnapshot({ snapshot }: OperationRequest<'removeSnapshot'>): Promise<OperationResult<'removeSnapshot'>> {
    await this.#snapshots.remove(snapshot);
    return {};
  }

  listSnapshots(): OperationResult<'listSnapshots'> {
    return { snapshots: this.#snapshots.list() };
  }

  async flush({ disk: id, durability }: OperationRequest<'flush'>): Promise<OperationResult<'flush'>> {
    const disk = this.#disks.get(id);
    const thread = await disk.serial.run(() => this.#disks.open(disk));
    await thread.call('flush', { disk: id, durability });
    return {};
  }

  async compact({ disk: id }: OperationRequest<'compact'>): Promise<OperationResult<'compact'>> {
    const disk = this.#disks.get(id);
    await disk.serial.run(() => this.#disks.open(disk));
    await this.#compactor.compact(disk);
    return { layers: disk.record.layers.length };
  }

  async stat({ disk: id }: OperationRequest<'stat'>): Promise<OperationResult<'stat'>> {
    const disk = this.#disks.get(id);
    const { sizeBytes, layers, uppers } = disk.record;
    const own = [...layers.flatMap((layer) => (layer.kind === 'own' ? [layer.layer] : [])), ...uppers];
    const sizes = own
      .filter((layer) => this.#layers.isExclusive(layer))
      .map((layer) => this.#layers.allocatedBytes(layer));
    const allocatedBytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    const usage = await disk.thread?.call('usage', { disk: id });
    return { sizeBytes, allocatedBytes, layers: layers.length, connections: usage?.connections ?? 0 };
  }

  async counters(): Promise<OperationResult<'counters'>> {
    const parts = await Promise.all(this.#options.threads.map((thread) => thread.call('counters', {})));
    const sum = (key: keyof (typeof parts)[number]) => parts.reduce((total, part) => total + part[key], 0);
    const disks = this.#disks.all();
    return {
      disks: disks.length,
      attached: disks.filter(({ record }) => record.socket !== null).length,
      connections: sum('connections'),
      reads: sum('reads'),
      readBytes: sum('readBytes'),
      writes: sum('writes'),
      writtenBytes: sum('writtenBytes'),
      flushes: sum('flushes'),
      zeroes: sum('zeroes'),
      errors: sum('errors'),
      swaps: this.#swaps,
      compactions: this.#compactor.count,
    };
  }

  /** Ends serving. Records stay: what is served now is served again by the next daemon. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#compactor.idle(), this.#snapshots.idle()]);
    await Promise.all(this.#disks.all().map((disk) => disk.serial.run(() => this.#disks.close(disk))));
  }
}
