import type { LayerStack } from '../layers/contract.ts';

/** A stack with the reads that wait for it: it is closed when the last one is done. */
export class StackUse {
  readonly stack: LayerStack;
  readonly #reads = new Set<Promise<void>>();

  constructor(stack: LayerStack) {
    this.stack = stack;
  }

  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> {
    const read = this.stack.read(target, offset, signal).finally(() => this.#reads.delete(read));
    this.#reads.add(read);
    return read;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#reads);
    await this.stack.close();
  }
}
