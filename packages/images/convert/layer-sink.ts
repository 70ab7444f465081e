import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { LayerWriter, type WrittenLayer } from '@aenv/block/layers/commit/layer-writer.ts';
import { BLOCK_SIZE } from '../ext4/model/geometry.ts';
import type { BlockSink } from '../ext4/sink.ts';
import { LAYER_FILE } from './layer-record.ts';

export interface LayerIdentity {
  readonly uuid: string;
  /** undefined for the lowest layer */
  readonly parentUuid: string | undefined;
  /** bytes of the disk */
  readonly virtualSize: number;
}

/** A layer that blocks go to, in a file of its own. Unless it is finished, nothing is left of it. */
export class LayerSink implements BlockSink, AsyncDisposable {
  readonly #writer: LayerWriter;
  #isFinished = false;

  private constructor(writer: LayerWriter) {
    this.#writer = writer;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(folder: string, { parentUuid, ...identity }: LayerIdentity): Promise<LayerSink> {
    const parent = parentUuid === undefined ? {} : { parentUuid };
    return new LayerSink(await LayerWriter.create({ path: join(folder, LAYER_FILE), ...identity, ...parent }));
  }

  write(block: number, data: Uint8Array): Promise<void> {
    return this.#writer.append(data, block * BLOCK_SIZE);
  }

  async finish(): Promise<WrittenLayer> {
    const written = await this.#writer.finish();
    this.#isFinished = true;
    // Volumes stack on it: nothing may change it any more. The daemon that serves them is a user of its own.
    await chmod(written.path, 0o444);
    return written;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isFinished) await this.#writer.abort();
  }
}
