import { connect, type Socket } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { encodeFrame, FrameReader } from '../blockd/control/frames.ts';
import {
  Answer,
  OPERATIONS,
  type Operation,
  type OperationRequest,
  type OperationResult,
} from '../blockd/control/messages.ts';

interface Pending {
  readonly operation: Operation;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
}

/** What a request fails with when the daemon goes away before it has answered. */
function lost(): AenvError {
  return new AenvError('block_daemon_failed', 'the block daemon ended before it had answered');
}

/** A connection to the control socket of a block daemon. */
export class BlockdConnection {
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  #next = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    const frames = new FrameReader();
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const message of frames.push(chunk)) this.#receive(message);
      } catch {
        socket.destroy();
      }
    });
    socket.once('close', () => {
      for (const { reject } of this.#pending.values()) reject(lost());
      this.#pending.clear();
      resolve();
    });
  }

  /** @throws AenvError `block_daemon_failed` when nobody listens there */
  static async open(path: string): Promise<BlockdConnection> {
    const socket = connect(path);
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
      });
    } catch (error) {
      throw new AenvError('block_daemon_failed', `no block daemon listens on ${path}`, { cause: error });
    }
    return new BlockdConnection(socket);
  }

  /** @throws AenvError as the operation does; `block_daemon_failed` when the daemon went away */
  async call<O extends Operation>(operation: O, args: OperationRequest<O>): Promise<OperationResult<O>> {
    if (this.#socket.destroyed) throw lost();
    const id = this.#next++;
    // First of all: what is too long for a frame is nothing that an answer is waited for.
    const frame = encodeFrame({ id, op: operation, args });
    const { promise, resolve, reject } = Promise.withResolvers<OperationResult<O>>();
    this.#pending.set(id, { operation, resolve, reject });
    this.#socket.write(frame);
    return await promise;
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(message: unknown): void {
    const answer = Answer.parse(message);
    const pending = this.#pending.get(answer.id);
    if (pending === undefined) return;
    this.#pending.delete(answer.id);
    if ('error' in answer) {
      const { code, message: text, remediation } = answer.error;
      pending.reject(new AenvError(code, text, { remediation }));
      return;
    }
    const result = OPERATIONS[pending.operation].result.safeParse(answer.result);
    if (result.success) pending.resolve(result.data as never);
    else pending.reject(new AenvError('internal', 'the block daemon said something else', { cause: result.error }));
  }
}
