import { realpath } from 'node:fs/promises';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { FileLock } from '@aenv/platform/locks/file-lock.ts';
import type { AssetUses, Claim } from '../contract.ts';
import { assetPlaces } from '../places.ts';
import { writeHomeFile } from './home-file.ts';

export interface HomeUsesOptions {
  readonly assetsDir: string;
  readonly home: string;
  /** paths that this home refers to by what only it can read: its ledger, and what it boots */
  readonly referred: () => Iterable<string>;
  readonly clock: Clock;
}

/** The use that one home makes of a folder of assets that others may use too. */
export class HomeUses implements AssetUses {
  readonly #options: HomeUsesOptions;
  readonly #lock: FileLock;
  /** of what is being made now, once for each time that it is claimed */
  readonly #claimed = new Map<symbol, readonly string[]>();
  #writing: Promise<void> = Promise.resolve();

  constructor(options: HomeUsesOptions) {
    this.#options = options;
    this.#lock = new FileLock(assetPlaces(options.assetsDir).lock, options.clock);
  }

  async during<T>(work: (claim: Claim) => Promise<T>, signal?: AbortSignal): Promise<T> {
    using _hold = await this.#lock.shared(signal);
    const key = Symbol('use');
    try {
      return await work(async (paths) => {
        this.#claimed.set(key, [...(this.#claimed.get(key) ?? []), ...paths]);
        await this.refresh();
      });
    } finally {
      // By now the ledger has what was kept; the rest is forgotten with the next refresh.
      this.#claimed.delete(key);
    }
  }

  refresh(): Promise<void> {
    // One after the other, so that the last one written knows the most.
    this.#writing = this.#writing.catch(() => {}).then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { assetsDir, home, referred } = this.#options;
    const paths = [...referred(), ...[...this.#claimed.values()].flat()];
    await writeHomeFile(assetPlaces(assetsDir).homes, { home: await realpath(home), paths });
  }
}
