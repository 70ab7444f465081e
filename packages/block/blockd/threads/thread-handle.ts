import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ERRORS, type ErrorCode } from '@aenv/contracts/errors/registry.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { ThreadData, ThreadMessage, ThreadOperation, ThreadOperations } from './operations.ts';

/** How long a thread may take to put down what it has. */
const END_MS = 5_000;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A thread that serves disks, as the main thread sees it. */
export class ThreadHandle {
  /** Rejects when the thread ends although nobody closed it: what it had is lost, and so is the daemon. */
  readonly failed: Promise<never>;
  /** disks that it has been given */
  readonly disks = new Set<string>();
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<void>();
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  #closing = false;

  constructor(data: ThreadData, log: Logger) {
    this.#worker = new Worker(new URL('entry.ts', import.meta.url), { workerData: data, name: 'disks' });
    const { promise, reject } = Promise.withResolvers<never>();
    this.failed = promise;
    this.failed.catch(() => {});
    const fail = (why: unknown) => {
      const error = AenvError.from(why, 'a disk thread has ended');
      for (const pending of this.#pending.values()) pending.reject(error);
      this.#pending.clear();
      this.#ready.reject(error);
      if (!this.#closing) reject(error);
    };
    this.#ready.promise.catch(() => {});
    this.#worker.on('error', fail);
    this.#worker.once('exit', (code) => fail(new Error(`exit code ${code}`)));
    this.#worker.on('message', (message: ThreadMessage) => this.#receive(message, log));
  }

  /** Resolves when its code is loaded. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  call<O extends ThreadOperation>(
    operation: O,
    args: Parameters<ThreadOperations[O]>[0],
  ): Promise<ReturnType<ThreadOperations[O]>> {
    const id = this.#next++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(id, { resolve, reject });
    this.#worker.postMessage({ id, operation, args });
    return promise as Promise<ReturnType<ThreadOperations[O]>>;
  }

  /** Ends the thread; its disks should have been closed. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.race([this.call('end', {}).catch(() => {}), delay(END_MS, undefined, { ref: false })]);
    await this.#worker.terminate();
  }

  #receive(message: ThreadMessage, log: Logger): void {
    switch (message.kind) {
      case 'ready':
        this.#ready.resolve();
        break;
      case 'log':
        log[message.level](message.message, message.fields);
        break;
      case 'result':
        this.#take(message.id)?.resolve(message.result);
        break;
      case 'error':
        this.#take(message.id)?.reject(new AenvError(codeOf(message.code), message.message));
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function codeOf(code: string): ErrorCode {
  return code in ERRORS ? (code as ErrorCode) : 'internal';
}
