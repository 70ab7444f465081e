import type { Socket } from 'node:net';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Export } from './export.ts';
import { Negotiation, type Session } from './negotiation/negotiation.ts';
import { Input } from './protocol/input.ts';
import { GREETING, HANDSHAKE } from './protocol/numbers.ts';
import { readInto } from './read-into.ts';
import type { BufferPool } from './transmission/buffer-pool.ts';
import { ReplyStream } from './transmission/reply-stream.ts';
import { Transmission } from './transmission/transmission.ts';

/** A client that connects has this long to choose an export. */
const NEGOTIATION_MS = 10_000;

export interface ConnectionOptions {
  readonly find: (name: string) => Export | undefined;
  readonly names: () => readonly string[];
  readonly pool: BufferPool;
  readonly log: Logger;
}

/** One client, from its greeting to its end. */
export class Connection {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #input = new Input();
  readonly #negotiation: Negotiation;
  readonly #timer: NodeJS.Timeout;
  #transmission: Transmission | undefined;
  #replies: ReplyStream | undefined;
  #session: Session | undefined;
  #blocked = false;
  #ending = false;

  /** @param accepted taken over */
  constructor(accepted: Socket, options: ConnectionOptions) {
    const socket = readInto(accepted, options.pool.incoming, (chunk) => this.#receive(chunk));
    this.#socket = socket;
    this.#options = options;
    this.#negotiation = new Negotiation(options.find, options.names, (reply) => socket.write(reply));
    this.#timer = setTimeout(() => this.#break(), NEGOTIATION_MS);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('error', () => this.#break());
    socket.once('close', () => {
      clearTimeout(this.#timer);
      this.#transmission?.close();
      this.#replies?.close();
      resolve();
    });
    const flags = Buffer.alloc(2);
    flags.writeUInt16BE(HANDSHAKE.fixedNewstyle | HANDSHAKE.noZeroes);
    socket.write(Buffer.concat([GREETING, flags]));
  }

  /** Breaks the connection at once; what was not answered counts as not done. */
  destroy(): void {
    this.#break();
  }

  #receive(chunk: Buffer): void {
    if (this.#ending) return;
    this.#input.push(chunk);
    if (!this.#blocked) this.#advance();
    this.#input.keep();
  }

  #advance(): void {
    if (this.#socket.destroyed || this.#ending) return;
    if (this.#transmission === undefined && !this.#negotiate()) return;
    const { export: target } = this.#session ?? {};
    switch (this.#transmission?.advance(this.#input)) {
      case 'broken':
        this.#break();
        break;
      case 'finished':
        this.#ending = true;
        this.#endWhenSettled();
        break;
      case 'blocked':
        // Until others have been answered nothing more is read from this client.
        this.#blocked = true;
        this.#socket.pause();
        target?.budget.wait(() => this.#retry());
    }
  }

  #retry(): void {
    this.#blocked = false;
    this.#advance();
    if (!this.#blocked) this.#socket.resume();
  }

  /** @returns whether the client has come to an agreement */
  #negotiate(): boolean {
    const outcome = this.#negotiation.advance(this.#input);
    if (outcome.kind === 'closed') this.#socket.destroySoon();
    if (outcome.kind !== 'agreed') return false;
    clearTimeout(this.#timer);
    this.#session = outcome.session;
    const { budget } = outcome.session.export;
    this.#replies = new ReplyStream(this.#socket, this.#options.pool, (cost) => budget.give(cost));
    this.#transmission = new Transmission(outcome.session, this.#replies, this.#options.log, () =>
      this.#endWhenSettled(),
    );
    return true;
  }

  /** After a goodbye the requests that are under way are still answered. */
  #endWhenSettled(): void {
    if (this.#ending && this.#transmission?.busy !== true) this.#socket.destroySoon();
  }

  #break(): void {
    this.#socket.destroy();
  }
}
