import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** Whether a fake guest executes; paused, its sockets stay open and silent, as those of a stopped kernel do. */
export class Gate {
  #open = true;
  #waiting: (() => void)[] = [];

  get open(): boolean {
    return this.#open;
  }

  close(): void {
    this.#open = false;
  }

  reopen(): void {
    this.#open = true;
    for (const step of this.#waiting.splice(0)) step();
  }

  /** Runs the step now, or when the gate is opened again. */
  pass(step: () => void): void {
    if (this.#open) step();
    else this.#waiting.push(step);
  }
}

/** A socket as a guest sees it: bytes go in and out only while its gate is open. */
export class GatedStream extends Duplex {
  readonly #socket: Socket;
  readonly #gate: Gate;

  constructor(socket: Socket, gate: Gate) {
    super();
    this.#socket = socket;
    this.#gate = gate;
    socket.on('data', (chunk: Buffer) => {
      socket.pause();
      gate.pass(() => {
        if (this.push(chunk)) socket.resume();
      });
    });
    socket.on('end', () => gate.pass(() => this.push(null)));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.#gate.pass(() => this.#socket.resume());
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#gate.pass(() => {
      this.#socket.write(chunk, (error) => done(error));
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#gate.pass(() => {
      this.#socket.end();
      done();
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
