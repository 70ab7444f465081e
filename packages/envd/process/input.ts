import type { Writable } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

// Up to here input is taken at once; above it the sender waits until the process has read.
const BUFFERED = 1024 * 1024;

/** The input of a process: in the order of the calls, with back-pressure on the senders. */
export class Input {
  readonly #stream: Writable | undefined;
  readonly #kind: 'stdin' | 'pty';
  #open: boolean;

  constructor(stream: Writable | undefined, kind: 'stdin' | 'pty') {
    this.#stream = stream;
    this.#kind = kind;
    this.#open = stream !== undefined;
    stream?.on('close', () => {
      this.#open = false;
    });
  }

  /**
   * Returns when the process, or the buffer before it, has the bytes.
   * @throws AenvError `input_refused` when the process takes no such input (any more)
   */
  async write(kind: 'stdin' | 'pty', bytes: Uint8Array): Promise<void> {
    if (kind !== this.#kind) {
      const what = this.#kind === 'pty' ? 'has a terminal, send its input as pty' : 'has no terminal';
      throw new AenvError('input_refused', `the process ${what}`);
    }
    const stream = this.#stream;
    if (stream === undefined || !this.#open) throw new AenvError('input_refused', 'stdin is closed');
    if (bytes.length === 0) return;
    await new Promise<void>((resolve, reject) => {
      stream.write(bytes, (error) => {
        if (error) reject(new AenvError('input_refused', `the process does not read its input: ${error.message}`));
        else resolve();
      });
      if (stream.writableLength <= BUFFERED) resolve();
    });
  }

  /** Drops what was not read: there is no reader any more. */
  close(): void {
    this.#open = false;
    this.#stream?.destroy();
  }

  /** End of file after all that was written. Without effect when it is closed already. */
  end(): void {
    this.#open = false;
    if (this.#stream !== undefined && !this.#stream.writableEnded) this.#stream.end();
  }
}
