import type { Collected, ImageInfo, StorageService } from '../../storage/contract.ts';

/** Notes what it is asked for. */
export class FakeStorage implements StorageService {
  readonly calls: string[] = [];
  /** thrown by the next call */
  failure: unknown;
  list: readonly ImageInfo[] = [];
  collected: Collected = { removed: [], freedBytes: 0 };

  async images(): Promise<readonly ImageInfo[]> {
    return this.list;
  }

  removeImage(reference: string): Promise<Collected> {
    return this.#call(`rm ${reference}`);
  }

  collectImages(): Promise<Collected> {
    return this.#call('images');
  }

  collect({ all = false } = {}): Promise<Collected> {
    return this.#call(all ? 'all' : 'old');
  }

  async #call(name: string): Promise<Collected> {
    if (this.failure !== undefined) throw this.failure;
    this.calls.push(name);
    return this.collected;
  }
}
