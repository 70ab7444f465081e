import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Durability, FrozenLayer, WritableLayer } from '../../layers/contract.ts';
import type { LayerFiles } from '../../layers/files/contract.ts';
import { hostFiles } from '../../layers/files/host.ts';
import { fileLayer, LayerPool } from '../../layers/stack/pool.ts';
import { createWritableLayer, reopenWritableLayer } from '../../layers/writable/open.ts';
import { LayeredVolume } from '../layered-volume.ts';

/** Makes volumes of real layers in a folder that goes when the lab is disposed of. */
export class VolumeLab implements AsyncDisposable {
  readonly folder: string;
  readonly size: number;
  readonly pool = new LayerPool();
  readonly #files: LayerFiles;

  private constructor(folder: string, size: number, files: LayerFiles) {
    this.folder = folder;
    this.size = size;
    this.#files = files;
  }

  /** @param files what writable layers reach their files through */
  static async open(size: number, files: LayerFiles = hostFiles): Promise<VolumeLab> {
    return new VolumeLab(await mkdtemp(join(tmpdir(), 'aenv-volume-')), size, files);
  }

  layer(uuid: string = randomUUID()): Promise<WritableLayer> {
    return createWritableLayer({ ...this.#place(uuid), uuid, virtualSize: this.size });
  }

  /** A volume over sealed layers, with a new upper, or with one that is there. */
  async volume(
    lowers: readonly string[],
    options: { readonly upper?: string; readonly durability?: Durability } = {},
  ): Promise<LayeredVolume> {
    const upper =
      options.upper === undefined ? await this.layer() : await reopenWritableLayer(this.#place(options.upper));
    return new LayeredVolume({
      id: 'volume',
      size: this.size,
      durability: options.durability ?? 'relaxed',
      stack: await this.pool.openStack(lowers.map((path) => fileLayer(path))),
      upper,
    });
  }

  /** Exchanges the upper of a volume; the frozen layer is in nobody's use but the stack's. */
  async swap(volume: LayeredVolume): Promise<FrozenLayer> {
    const frozen = volume.swap(await this.layer());
    await frozen.close();
    return frozen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #place(uuid: string) {
    return { folder: join(this.folder, uuid), pendingPath: join(this.folder, `${uuid}.pending`), files: this.#files };
  }
}
