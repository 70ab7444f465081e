import { closeSync, openSync } from 'node:fs';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { FrozenLayer, WritableLayer } from '../../layers/contract.ts';
import { Export, type ExportCounters } from '../../nbd/export.ts';
import { NbdServer } from '../../nbd/server.ts';
import type { BufferPool } from '../../nbd/transmission/buffer-pool.ts';
import type { LayeredVolume } from '../../volume/layered-volume.ts';
import { frozenMark } from './layer-opener.ts';

/** Owner and group may connect; who is in the group is up to whoever made the folder. */
const SOCKET_MODE = 0o660;

/** An open disk, and its socket if it has one. */
export class ServedDisk {
  readonly volume: LayeredVolume;
  readonly #export: Export;
  readonly #buffers: BufferPool;
  readonly #log: Logger;
  #prepared: WritableLayer | undefined;
  #server: NbdServer | undefined;

  /** @param prepared an empty upper for the next swap, if there is one already */
  constructor(volume: LayeredVolume, prepared: WritableLayer | undefined, buffers: BufferPool, log: Logger) {
    this.volume = volume;
    this.#prepared = prepared;
    this.#buffers = buffers;
    this.#log = log;
    this.#export = new Export(volume.id, volume);
  }

  get counters(): ExportCounters {
    return this.#export.counters;
  }

  get connections(): number {
    return this.#server?.connections ?? 0;
  }

  async attach(socket: string): Promise<void> {
    await this.detach();
    this.#server = await NbdServer.listen({
      path: socket,
      mode: SOCKET_MODE,
      export: this.#export,
      pool: this.#buffers,
      log: this.#log,
    });
  }

  async detach(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.close();
  }

  prepare(next: WritableLayer): void {
    if (this.#prepared !== undefined) throw new AenvError('internal', `disk ${this.volume.id} is prepared already`);
    this.#prepared = next;
  }

  /**
   * Writing waits for nothing but this.
   * @returns the frozen layer, in the caller's use, and how long it took
   * @throws AenvError; then the disk is written on as before
   */
  swap(): { readonly frozen: FrozenLayer; readonly ms: number } {
    const next = this.#prepared;
    if (next === undefined) throw new AenvError('internal', `disk ${this.volume.id} is not prepared`);
    const begin = performance.now();
    // Survives the end of this process, which is all that it is for. It comes first: a layer that has it and is written on,
    // as no swap came of it, is read as a frozen one by the next daemon, with all that is in it.
    closeSync(openSync(frozenMark(this.volume.upperFolder), 'a', 0o600));
    const frozen = this.volume.swap(next);
    this.#prepared = undefined;
    return { frozen, ms: performance.now() - begin };
  }

  async close(): Promise<void> {
    await this.detach();
    await Promise.all([this.volume.close(), this.#prepared?.close()]);
  }
}
