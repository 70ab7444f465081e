import { stat } from 'node:fs/promises';
import { checkFile, type FileSum, hashFile } from '../repository/hash-file.ts';
import { inParallel } from '../repository/in-parallel.ts';
import type { LayerSum } from './disk-state.ts';

const PARALLEL = 2;
/** Files that are remembered; those of before are read again. */
const MOST = 4096;

/**
 * Digests of layers' files, which never change. What was read once by this process is not read again while the file system
 * says that nobody wrote to it: snapshots of one sandbox have most of their files in common.
 */
export class LayerSums {
  readonly #known = new Map<string, { readonly state: string; readonly sum: FileSum }>();

  async of(paths: readonly string[]): Promise<LayerSum[]> {
    const sums: LayerSum[] = [];
    for (const path of paths) sums.push({ path, ...(await this.#sumOf(path)) });
    return sums;
  }

  /**
   * @param what the files are, for messages
   * @throws AenvError `snapshot_corrupt` naming the file that is missing or not what it was; `io_failed`
   */
  async check(files: readonly LayerSum[], what = 'layer'): Promise<void> {
    await inParallel(files, PARALLEL, async ({ path, ...sum }) => {
      const state = await stateOf(path);
      const known = this.#known.get(path);
      if (known !== undefined && known.state === state && known.sum.digest === sum.digest) return;
      await checkFile(path, sum, `${what} ${path}`);
      if (state !== undefined) this.#note(path, state, sum);
    });
  }

  async #sumOf(path: string): Promise<FileSum> {
    const state = await stateOf(path);
    const known = this.#known.get(path);
    if (known !== undefined && known.state === state) return known.sum;
    const sum = await hashFile(path);
    if (state !== undefined) this.#note(path, state, sum);
    return sum;
  }

  #note(path: string, state: string, sum: FileSum): void {
    this.#known.delete(path);
    this.#known.set(path, { state, sum });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
  }
}

/** The time of change cannot be set back by those who write. */
async function stateOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join();
}
