import type { Readable, Writable } from 'node:stream';

// A line is a word and a few numbers; the native program never sends more.
const MAX_LINE = 256;

/** The lines that the native spawn applet writes on its control socket. See spawn.c for the protocol. */
export class ControlChannel {
  readonly #socket: Readable & Writable;
  #rest = '';
  #lines: string[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(socket: Readable & Writable) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => this.#take(text));
    socket.on('close', () => this.#end());
    socket.on('end', () => this.#end());
    // The applet's end of it dies with the applet; its exit tells the rest.
    socket.on('error', () => this.#end());
  }

  /** The next line as words; undefined at the end of the stream. */
  async next(): Promise<string[] | undefined> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) return line.split(' ');
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  send(line: string): void {
    if (!this.#ended) this.#socket.write(`${line}\n`);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\n');
    this.#rest = (parts.pop() ?? '').slice(0, MAX_LINE);
    this.#lines.push(...parts);
    this.#wake?.();
  }

  #end(): void {
    this.#ended = true;
    this.#wake?.();
  }
}
