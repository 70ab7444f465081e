import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { BlockdFolders } from '../layout.ts';
import { layerFolder } from '../layout.ts';

/** The folder of layers: who uses which, and how large they are. A layer that nobody uses any more is removed. */
export class LayerStore {
  readonly #folders: BlockdFolders;
  readonly #log: Logger;
  readonly #uses = new Map<string, number>();

  constructor(folders: BlockdFolders, log: Logger) {
    this.#folders = folders;
    this.#log = log;
  }

  use(layers: Iterable<string>): void {
    for (const layer of layers) this.#uses.set(layer, (this.#uses.get(layer) ?? 0) + 1);
  }

  /** As if somebody used all that is there now, until the next start: nobody can say who does. */
  async useAll(): Promise<void> {
    const pending = (await readdir(this.#folders.pending)).map(layerOfPending);
    this.use(new Set([...(await readdir(this.#folders.layers)), ...pending]));
  }

  /** Ends uses; what nobody has any more is gone when it resolves. */
  async release(layers: Iterable<string>): Promise<void> {
    for (const layer of layers) {
      const left = (this.#uses.get(layer) ?? 0) - 1;
      if (left > 0) this.#uses.set(layer, left);
      else {
        this.#uses.delete(layer);
        await this.#remove(layer);
      }
    }
  }

  /** Whether nobody else uses a layer. */
  isExclusive(layer: string): boolean {
    return this.#uses.get(layer) === 1;
  }

  /** Bytes that the files of a layer occupy on the host. */
  async allocatedBytes(layer: string): Promise<number> {
    const folder = layerFolder(this.#folders, layer);
    const names = await readdir(folder).catch(() => []);
    const sizes = names.map(
      async (name) => ((await stat(join(folder, name)).catch(() => undefined))?.blocks ?? 0) * 512,
    );
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }

  /** Removes what an earlier daemon has left: all that nobody uses. To be called when all uses are known. */
  async removeUnused(): Promise<number> {
    let removed = 0;
    for (const layer of await readdir(this.#folders.layers)) {
      if (this.#uses.has(layer)) continue;
      await this.#remove(layer);
      removed++;
    }
    for (const layer of await readdir(this.#folders.pending)) {
      if (!this.#uses.has(layerOfPending(layer))) await rm(join(this.#folders.pending, layer), { force: true });
    }
    return removed;
  }

  async #remove(layer: string): Promise<void> {
    try {
      await rm(layerFolder(this.#folders, layer), { recursive: true, force: true });
      await rm(join(this.#folders.pending, layer), { force: true });
    } catch (error) {
      // The next start tries again.
      this.#log.warn('a layer could not be removed', { layer, error });
    }
  }
}

function layerOfPending(name: string): string {
  return name.replace(/\.new$/, '');
}
