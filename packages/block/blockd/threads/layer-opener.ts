import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { FrozenLayer, LayerStack, WritableLayer } from '../../layers/contract.ts';
import { fileLayer, type LayerPool, type LayerRef } from '../../layers/stack/pool.ts';
import { reopenWritableLayer } from '../../layers/writable/open.ts';
import { sealedFile } from '../../layers/writable/sealed-file.ts';
import { LayeredVolume } from '../../volume/layered-volume.ts';
import { type BlockdFolders, layerFolder } from '../layout.ts';
import type { DiskLayer } from '../records/schema.ts';
import type { OpenDisk, OpenedDisk } from './operations.ts';

/** In the folder of a layer that a swap has frozen: it is never written again, whatever the record says. */
const FROZEN_MARK = 'frozen';

export function frozenMark(folder: string): string {
  return join(folder, FROZEN_MARK);
}

export type RemoteLayer = Extract<DiskLayer, { kind: 'remote' }>;

/** A disk that was opened, with its record brought up to date. */
export interface Opened extends OpenedDisk {
  readonly volume: LayeredVolume;
  readonly prepared: WritableLayer | undefined;
}

/** Finds the files of layers and puts them together, also after a crash at any moment. */
export class LayerOpener {
  readonly #folders: BlockdFolders;
  readonly #pool: LayerPool;
  readonly #remote: (layer: RemoteLayer) => Promise<LayerRef>;

  /** @param remote finds layers that are no files of this host */
  constructor(folders: BlockdFolders, pool: LayerPool, remote: (layer: RemoteLayer) => Promise<LayerRef>) {
    this.#folders = folders;
    this.#pool = pool;
    this.#remote = remote;
  }

  place(layer: string) {
    return { folder: layerFolder(this.#folders, layer), pendingPath: join(this.#folders.pending, layer) };
  }

  reopen(layer: string): Promise<WritableLayer> {
    return reopenWritableLayer(this.place(layer));
  }

  /** The file of a layer that is not written any more. @throws AenvError `layer_corrupt` when it has none */
  async sealedFile(layer: string): Promise<{ readonly path: string; readonly sizeBytes: number }> {
    const found = await this.#findSealed(layer);
    if (found !== undefined) return found;
    throw new AenvError('layer_corrupt', `the layer ${layerFolder(this.#folders, layer)} was not sealed`);
  }

  /**
   * Opens a disk. A swap takes place in memory and leaves a mark, before the record tells of it; then the first upper is
   * sealed, and what is written is in the second one. Any of these shows that the first one is frozen, the latter two also
   * after a power cut.
   */
  async open({ disk, sizeBytes, durability, layers, uppers }: OpenDisk): Promise<Opened> {
    const [first, second] = uppers;
    if (first === undefined) throw new AenvError('internal', `disk ${disk} has no upper`);
    await using undo = new Rollback();
    const reopen = async (layer: string) => {
      const upper = await this.reopen(layer);
      undo.add(() => upper.close());
      return upper;
    };
    const next = second === undefined ? undefined : await reopen(second);
    const isSwapped = next !== undefined && (await this.#isSwapped(first, next));
    const upper = isSwapped ? next : await reopen(first);
    const chain = isSwapped ? [...layers, { kind: 'own', layer: first } as const] : layers;
    const { stack, frozen } = await this.openStack(chain);
    undo.keep();
    return {
      volume: new LayeredVolume({ id: disk, size: sizeBytes, durability, stack, upper, frozen }),
      prepared: isSwapped ? undefined : next,
      layers: chain,
      uppers: isSwapped ? uppers.slice(1) : uppers,
    };
  }

  /**
   * Opens read-only layers; those that a crash kept from being sealed are read as they are, and sealed meanwhile.
   * @param live finds those that are open already and not sealed yet: no file is frozen twice
   * @returns also the layers that were frozen here, bottom first, in the caller's use
   */
  async openStack(
    layers: readonly DiskLayer[],
    live: (layer: string) => FrozenLayer | undefined = () => undefined,
  ): Promise<{ readonly stack: LayerStack; readonly frozen: readonly FrozenLayer[] }> {
    await using undo = new Rollback();
    const hold = (frozen: FrozenLayer) => {
      undo.add(() => frozen.close());
      return frozen;
    };
    const sealed: LayerRef[] = [];
    const unsealed: { readonly layer: string; readonly open: FrozenLayer | undefined }[] = [];
    for (const layer of layers) {
      const open = layer.kind === 'own' ? live(layer.layer) : undefined;
      const ref = open === undefined ? await this.#refOf(layer) : undefined;
      if (ref === undefined && layer.kind === 'own') {
        unsealed.push({ layer: layer.layer, open: open && hold(open.retain()) });
        continue;
      }
      // Sealed ones go below: what lies under this one has to be sealed first.
      for (const lower of unsealed.splice(0)) sealed.push(fileLayer(await this.#seal(lower.layer, lower.open)));
      if (ref !== undefined) sealed.push(ref);
    }
    let stack = await this.#pool.openStack(sealed);
    const frozen: FrozenLayer[] = [];
    for (const { layer, open } of unsealed) {
      const top = open ?? hold((await this.reopen(layer)).freeze());
      if (open === undefined) frozen.push(top);
      const below = stack;
      stack = below.over(top);
      await below.close();
    }
    // Those that were open already are in the stack's use and in that of their volume.
    for (const { open } of unsealed) await open?.close();
    undo.keep();
    return { stack, frozen };
  }

  /** @returns undefined for an own layer that is not sealed */
  async #refOf(layer: DiskLayer): Promise<LayerRef | undefined> {
    if (layer.kind === 'remote') return await this.#remote(layer);
    const path = layer.kind === 'file' ? layer.path : (await this.#findSealed(layer.layer))?.path;
    return path === undefined ? undefined : fileLayer(path);
  }

  async #isSwapped(first: string, next: WritableLayer): Promise<boolean> {
    const { folder } = this.place(first);
    return existsSync(frozenMark(folder)) || !isEmpty(next) || (await this.#findSealed(first)) !== undefined;
  }

  async #seal(layer: string, live: FrozenLayer | undefined): Promise<string> {
    if (live !== undefined) return (await live.seal()).path;
    const frozen = (await this.reopen(layer)).freeze();
    await frozen.close();
    return (await frozen.durable).path;
  }

  #findSealed(layer: string): ReturnType<typeof sealedFile> {
    return sealedFile(layerFolder(this.#folders, layer));
  }
}

function isEmpty(layer: WritableLayer): boolean {
  let empty = true;
  layer.lookup(0, layer.virtualSize, () => {
    empty = false;
  });
  return empty;
}
