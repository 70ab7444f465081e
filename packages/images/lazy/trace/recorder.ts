import type { BlobSource } from '@aenv/block/blob/contract.ts';
import { PART, partLength } from '../geometry.ts';
import { MAX_RECORDS, type TraceRecord } from './format.ts';

/** Writes down which parts of layers are read, each once and in the order of the first time. */
export class TraceRecorder {
  readonly #sizes: number[] = [];
  readonly #seen = new Set<number>();
  #recording = true;

  /** A layer whose reads are written down. The first one is the lowest of the stack. */
  add(source: BlobSource): BlobSource {
    const layer = this.#sizes.push(source.size) - 1;
    const note = (target: Uint8Array, offset: number) => this.#note(layer, offset, target.length);
    const distrust = source.distrust?.bind(source);
    return {
      size: source.size,
      readSync: (target, offset) => {
        const done = source.readSync(target, offset);
        if (done) note(target, offset);
        return done;
      },
      read: async (target, offset, signal) => {
        note(target, offset);
        await source.read(target, offset, signal);
      },
      ...(distrust === undefined ? {} : { distrust }),
      close: () => source.close(),
    };
  }

  /** Ends the recording. Neighbours that were read one after the other are one record. */
  finish(): TraceRecord[] {
    this.#recording = false;
    const records: { layer: number; offset: number; length: number }[] = [];
    for (const key of this.#seen) {
      const layer = key % MAX_LAYERS;
      const part = (key - layer) / MAX_LAYERS;
      const length = partLength(part, this.#sizes[layer] ?? 0);
      const last = records.at(-1);
      if (last !== undefined && last.layer === layer && last.offset + last.length === part * PART)
        last.length += length;
      else records.push({ layer, offset: part * PART, length });
    }
    return records;
  }

  #note(layer: number, offset: number, length: number): void {
    if (!this.#recording || length === 0 || layer >= MAX_LAYERS) return;
    const last = Math.floor((offset + length - 1) / PART);
    for (let part = Math.floor(offset / PART); part <= last && this.#seen.size < MAX_RECORDS; part++) {
      this.#seen.add(part * MAX_LAYERS + layer);
    }
  }
}

/** Of the format: a layer's number has to fit a byte. */
const MAX_LAYERS = 256;
