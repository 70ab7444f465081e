import { stat } from 'node:fs/promises';

/**
 * Files whose every byte was checked by this process and that nobody has written to since, as far as the file system
 * knows: large files need not be read again before each use.
 */
export class VerifiedFiles {
  readonly #states = new Map<string, string>();

  /** Takes note of a file as it is now. */
  async add(path: string): Promise<void> {
    const state = await stateOf(path);
    if (state !== undefined) this.#states.set(path, state);
  }

  async has(path: string): Promise<boolean> {
    const known = this.#states.get(path);
    return known !== undefined && known === (await stateOf(path));
  }

  forget(path: string): void {
    this.#states.delete(path);
  }
}

/** The time of change cannot be set back by those who write. */
async function stateOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join();
}
