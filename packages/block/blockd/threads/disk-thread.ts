import { mkdir, rm } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { commitLayers } from '../../layers/commit/commit.ts';
import { fileLayer, LayerPool } from '../../layers/stack/pool.ts';
import { createWritableLayer } from '../../layers/writable/open.ts';
import { layerPaths } from '../../layers/writable/paths.ts';
import { type ExportCounters, noCounters } from '../../nbd/export.ts';
import { BufferPool } from '../../nbd/transmission/buffer-pool.ts';
import { type BlockdFolders, blockdFolders, layerFolder } from '../layout.ts';
import { LayerOpener } from './layer-opener.ts';
import type { CreateLayerSources } from './layer-sources.ts';
import { LazySources } from './lazy-sources.ts';
import type { OpenDisk, OpenedDisk, ThreadData, ThreadOperation, ThreadOperations } from './operations.ts';
import { ServedDisk } from './served-disk.ts';

type Handlers = {
  readonly [O in ThreadOperation]: (
    args: Parameters<ThreadOperations[O]>[0],
  ) => ReturnType<ThreadOperations[O]> | Promise<ReturnType<ThreadOperations[O]>>;
};

/** All that a thread has: disks, and the layers that they share. */
export class DiskThread implements Handlers {
  readonly #folders: BlockdFolders;
  readonly #log: Logger;
  readonly #layers = new LayerPool();
  readonly #buffers = new BufferPool();
  readonly #opener: LayerOpener;
  readonly #sources: LazySources;
  readonly #disks = new Map<string, ServedDisk>();
  /** of disks that are closed */
  readonly #past: ExportCounters = noCounters();

  constructor(data: ThreadData, log: Logger, createSources?: CreateLayerSources) {
    this.#folders = blockdFolders(data.root, data.runtime);
    this.#log = log;
    this.#sources = new LazySources(data, log, createSources);
    this.#opener = new LayerOpener(this.#folders, this.#layers, ({ key, source }) => this.#sources.ref(key, source));
  }

  async createLayer({ layer, sizeBytes }: { layer: string; sizeBytes: number }) {
    const made = await createWritableLayer({ ...this.#opener.place(layer), uuid: layer, virtualSize: sizeBytes });
    await made.close();
    return {};
  }

  async open(spec: OpenDisk): Promise<OpenedDisk> {
    if (this.#disks.has(spec.disk)) throw new AenvError('internal', `disk ${spec.disk} is open already`);
    const { volume, prepared, ...opened } = await this.#opener.open(spec);
    this.#disks.set(spec.disk, new ServedDisk(volume, prepared, this.#buffers, this.#log));
    return opened;
  }

  async close({ disk }: { disk: string }) {
    const served = this.#disks.get(disk);
    this.#disks.delete(disk);
    await served?.close();
    if (served !== undefined) addTo(this.#past, served.counters);
    return {};
  }

  async attach({ disk, socket }: { disk: string; socket: string }) {
    await this.#disk(disk).attach(socket);
    return {};
  }

  async detach({ disk }: { disk: string }) {
    await this.#disk(disk).detach();
    return {};
  }

  async prepare({ disk, layer }: { disk: string; layer: string }) {
    this.#disk(disk).prepare(await this.#opener.reopen(layer));
    return {};
  }

  swap({ disk }: { disk: string }) {
    const { frozen, ms } = this.#disk(disk).swap();
    frozen.durable.catch((error: unknown) => {
      this.#log.error('a layer could not be sealed', { disk, layer: frozen.uuid, error });
    });
    void frozen.close();
    return { frozen: frozen.uuid, ms };
  }

  async sealed({ disk, layer }: { disk: string; layer: string }) {
    await this.#disk(disk).volume.sealed(layer);
    return {};
  }

  async flush({ disk, durability }: Parameters<ThreadOperations['flush']>[0]) {
    await this.#disk(disk).volume.flush(durability);
    return {};
  }

  async merge({ layers, into, sizeBytes, isBottom }: Parameters<ThreadOperations['merge']>[0]) {
    const folder = layerFolder(this.#folders, into);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    try {
      const files = await Promise.all(layers.map((layer) => this.#opener.sealedFile(layer)));
      const written = await commitLayers(this.#layers, {
        layers: files.map(({ path }) => fileLayer(path)),
        path: layerPaths(folder).committed,
        uuid: into,
        virtualSize: sizeBytes,
        isBottom,
      });
      return { sizeBytes: written.sizeBytes };
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async restack({ disk, layers }: Parameters<ThreadOperations['restack']>[0]) {
    const { volume } = this.#disk(disk);
    const { stack } = await this.#opener.openStack(layers, (layer) => volume.unsealed(layer));
    volume.replaceStack(stack);
    return {};
  }

  usage({ disk }: { disk: string }) {
    const served = this.#disk(disk);
    return { ...served.volume.usage, connections: served.connections };
  }

  counters() {
    const sum = { ...this.#past, connections: 0 };
    for (const served of this.#disks.values()) {
      addTo(sum, served.counters);
      sum.connections += served.connections;
    }
    return sum;
  }

  async end() {
    await this.#sources.close();
    return {};
  }

  #disk(disk: string): ServedDisk {
    const served = this.#disks.get(disk);
    if (served === undefined) throw new AenvError('internal', `disk ${disk} is not open`);
    return served;
  }
}

function addTo(sum: ExportCounters, counters: ExportCounters): void {
  for (const key of Object.keys(counters) as (keyof ExportCounters)[]) sum[key] += counters[key];
}
