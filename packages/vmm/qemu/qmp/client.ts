import { connect, type Socket } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { LineSplitter } from './line-splitter.ts';
import { parseQmpMessage } from './message.ts';

/** The longest answer is a full console ring in base64, 176 KiB. */
const MAX_LINE = 1024 * 1024;
const MAX_EARLY_EVENTS = 64;

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * One QMP session on a unix socket. QEMU serves one client at a time and closes the socket only when it ends, so
 * `closed` is the first sign that a VM is gone.
 */
export class QmpClient {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  readonly #lines = new LineSplitter(MAX_LINE);
  readonly #greeting = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #onEvent: ((event: QmpEvent) => void) | undefined;
  #early: QmpEvent[] = [];
  #nextId = 1;
  #ended = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#greeting.promise.catch(() => {});
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#end());
  }

  /**
   * Connects and negotiates.
   * @throws AenvError `vm_died` when nothing listens, or when it does not answer within `timeoutMs`
   */
  static async connect(path: string, timeoutMs: number): Promise<QmpClient> {
    const client = new QmpClient(connect(path));
    const timer = setTimeout(() => client.close(), timeoutMs);
    try {
      await client.#greeting.promise;
      await client.execute('qmp_capabilities', {}, timeoutMs);
      return client;
    } catch (error) {
      client.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resolves when the session has ended, from whichever side. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Gives all events to `handler`, those that have come already first. One handler. */
  onEvent(handler: (event: QmpEvent) => void): void {
    this.#onEvent = handler;
    for (const event of this.#early.splice(0)) handler(event);
  }

  /**
   * @param timeoutMs how long QEMU may take to answer
   * @throws AenvError `vm_died` when the session ends or the answer does not come in time; `internal` when QEMU refuses
   */
  execute(command: string, args: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<unknown> {
    if (this.#ended) return Promise.reject(sessionEnded(command));
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      this.#pending.delete(id);
      reject(new AenvError('vm_died', `QEMU did not answer '${command}' within ${timeoutMs} ms`));
    }, timeoutMs);
    this.#pending.set(id, { resolve, reject, timer });
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    return promise;
  }

  /** Ends the session; the VM runs on. */
  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    for (const line of this.#lines.push(chunk)) {
      const message = parseQmpMessage(line);
      // A peer that does not speak QMP cannot be managed: the end of the session makes the owner look at the process.
      if (message === undefined) {
        this.close();
        return;
      }
      if (message.kind === 'greeting') this.#greeting.resolve();
      else if (message.kind === 'event') this.#deliver(message);
      else this.#settle(message);
    }
    if (this.#lines.tooLong) this.close();
  }

  #deliver(event: QmpEvent): void {
    if (this.#onEvent !== undefined) this.#onEvent(event);
    else if (this.#early.length < MAX_EARLY_EVENTS) this.#early.push(event);
  }

  #settle(
    message:
      | { kind: 'return'; id: number; value: unknown }
      | { kind: 'error'; id: number | undefined; description: string },
  ) {
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id);
    // Answers that came too late have no one waiting.
    if (pending === undefined || message.id === undefined) return;
    this.#pending.delete(message.id);
    clearTimeout(pending.timer);
    if (message.kind === 'return') pending.resolve(message.value);
    else pending.reject(new AenvError('internal', `QEMU refused: ${message.description}`));
  }

  #end(): void {
    this.#ended = true;
    this.#greeting.reject(sessionEnded('the greeting'));
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(sessionEnded('a command'));
    }
    this.#pending.clear();
    this.#closed.resolve();
  }
}

function sessionEnded(what: string): AenvError {
  return new AenvError('vm_died', `the control socket of QEMU closed before ${what} was answered`);
}
