import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { RangeOrigin } from '../fetch/origin.ts';

/** An origin in memory that notes what is asked and fails as told. */
export class FakeOrigin implements RangeOrigin {
  readonly name = 'fake';
  readonly asked: { readonly offset: number; readonly length: number }[] = [];
  data: Buffer;
  /** called before each answer; throws, or waits */
  before: (offset: number, signal: AbortSignal) => void | Promise<void> = () => {};
  /** called after each step with the bytes that have come */
  between: (filled: number) => void | Promise<void> = () => {};
  /** bytes after which progress is told and others get their turn */
  step = 1024 * 1024;
  atOnce = 0;
  mostAtOnce = 0;

  constructor(data: Buffer) {
    this.data = data;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal, onProgress: (filled: number) => void) {
    this.asked.push({ offset, length: target.length });
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce);
    try {
      await new Promise((resolve) => setImmediate(resolve));
      await this.before(offset, signal);
      for (let at = 0; at < target.length; at += this.step) {
        const end = Math.min(target.length, at + this.step);
        target.set(this.data.subarray(offset + at, offset + end), at);
        onProgress(end);
        await this.between(end);
      }
    } finally {
      this.atOnce--;
    }
  }

  get bytes(): number {
    return this.asked.reduce((sum, { length }) => sum + length, 0);
  }
}

export function down(): AenvError {
  return new AenvError('registry_unavailable', 'fake: nothing listens there');
}
