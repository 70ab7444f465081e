import type { Readable } from 'node:stream';

const CHUNK = 64 * 1024;

/**
 * Sends a local stream to a process piece by piece, in order, reading no further while a piece is on its way. The stream
 * is left paused, not destroyed, so that the next process can have it.
 */
export class InputPump {
  readonly #stream: Readable;
  readonly #send: (data: Uint8Array) => Promise<void>;
  readonly #end: () => Promise<void>;
  #last: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(stream: Readable, send: (data: Uint8Array) => Promise<void>, end: () => Promise<void>) {
    this.#stream = stream;
    this.#send = send;
    this.#end = end;
    stream.on('data', this.#onData).on('end', this.#onEnd);
    stream.resume();
  }

  stop(): void {
    this.#stopped = true;
    this.#stream.off('data', this.#onData).off('end', this.#onEnd);
    this.#stream.pause();
  }

  readonly #onData = (chunk: Buffer) => {
    this.#stream.pause();
    this.#enqueue(async () => {
      for (let at = 0; at < chunk.length; at += CHUNK) await this.#send(chunk.subarray(at, at + CHUNK));
      if (!this.#stopped) this.#stream.resume();
    });
  };

  readonly #onEnd = () => this.#enqueue(this.#end);

  /** A process may end without reading all of its input: then sending fails, and that is no fault of ours. */
  #enqueue(step: () => Promise<void>): void {
    this.#last = this.#last.then(step).catch(() => this.stop());
  }
}
