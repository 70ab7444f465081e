import { openLayerBlob } from '@aenv/block/blob/open-layer-blob.ts';
import type { LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { RemoteBlob } from '../resolve/contract.ts';
import { giveUp, type RemoteLayers } from './remote-layers.ts';
import type { TraceRecord } from './trace/format.ts';
import { TraceRecorder } from './trace/recorder.ts';
import { replayTrace } from './trace/replay.ts';
import type { TraceFiles } from './trace/trace-files.ts';

export interface TendedLayersOptions {
  readonly layers: RemoteLayers;
  readonly traces: TraceFiles;
  /** `ms` after the first opening of a layer during which its reads are written down */
  readonly traceMs: number;
  /** `ms` after the first opening of a layer after which the rest of it is fetched; undefined: never */
  readonly completeAfterMs: number | undefined;
  /** larger layers are never fetched as a whole: they would drive out what is in use */
  readonly completeUpToBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const RETRY_MS = 60_000;

/**
 * Layers of registries with what goes on behind those who read them: what a guest will read first is fetched before it
 * asks, as the trace of an earlier boot tells; where there is none yet, one is written; and later the rest of the layer is
 * fetched and its digest compared, so that it need not be asked for any more.
 */
export class TendedLayers {
  readonly #options: TendedLayersOptions;
  readonly #end = new AbortController();
  /** by digest: what goes on, or has gone on, since the start of this process */
  readonly #tended = new Map<string, Promise<void>>();
  /** one after the other, so that guests share the line with one of them at most */
  #completing: Promise<void> = Promise.resolve();

  constructor(options: TendedLayersOptions) {
    this.#options = options;
  }

  ref(remote: RemoteBlob): LayerRef {
    return { key: remote.digest, open: () => this.#open(remote) };
  }

  async close(): Promise<void> {
    this.#end.abort(new AenvError('layer_unavailable', 'the layers are closed'));
    await Promise.all(this.#tended.values());
    await this.#options.layers.close();
  }

  async #open(remote: RemoteBlob) {
    const { layers, traces } = this.#options;
    const blob = await layers.open(remote);
    try {
      if (this.#tended.has(remote.digest) || this.#end.signal.aborted) return await openLayerBlob(blob);
      const recorder = new TraceRecorder();
      const tending = traces.read(remote.digest).then((trace) => this.#tend(remote, trace ?? recorder));
      this.#tended.set(
        remote.digest,
        tending.catch((error: unknown) => this.#report(remote, error)),
      );
      return await openLayerBlob(recorder.add(blob));
    } catch (error) {
      await giveUp(blob, error);
      throw error;
    }
  }

  async #tend(remote: RemoteBlob, trace: readonly TraceRecord[] | TraceRecorder): Promise<void> {
    const { clock, traces, traceMs, layers, completeAfterMs, completeUpToBytes } = this.#options;
    const { signal } = this.#end;
    if (trace instanceof TraceRecorder) {
      await clock.sleep(traceMs, signal);
      await traces.write(remote.digest, trace.finish());
    } else await this.#replay(remote, trace);
    if (completeAfterMs === undefined || remote.size > completeUpToBytes || layers.isVerified(remote.digest)) return;
    await clock.sleep(completeAfterMs, signal);
    await this.#complete(remote);
  }

  /** It is a hint: guests ask for themselves what does not come in this way. */
  async #replay(remote: RemoteBlob, trace: readonly TraceRecord[]): Promise<void> {
    const { signal } = this.#end;
    const blob = await this.#options.layers.open(remote, { priority: 'background' });
    try {
      await replayTrace(trace, [blob], signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#options.log.warn('what a guest will read could not be fetched ahead', { digest: remote.digest, error });
    } finally {
      await blob.close();
    }
  }

  /** A registry that is away for a while is asked again, and holds up no other one meanwhile. */
  async #complete(remote: RemoteBlob): Promise<void> {
    const { clock, layers, log } = this.#options;
    const { signal } = this.#end;
    for (;;) {
      const turn = this.#completing.then(() => layers.complete(remote, signal));
      this.#completing = turn.catch(() => {});
      try {
        await turn;
        log.info('a layer is here as a whole', { digest: remote.digest, bytes: remote.size });
        return;
      } catch (error) {
        if (!(error instanceof AenvError) || error.code !== 'layer_unavailable' || signal.aborted) throw error;
        log.warn('a layer cannot be fetched as a whole yet', { digest: remote.digest, host: remote.host, error });
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  #report({ digest, host }: RemoteBlob, error: unknown): void {
    if (this.#end.signal.aborted) return;
    // The guests that use it are told by what they read; nobody else waits for this.
    this.#options.log.warn('a layer could not be fetched as a whole', { digest, host, error });
    this.#tended.delete(digest);
  }
}
