import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { encodeFrame, FrameReader } from './frames.ts';
import { OPERATIONS, type Operation, type OperationRequest, type OperationResult, Request } from './messages.ts';

/** What answers each operation. */
export type Handlers = {
  readonly [O in Operation]: (args: OperationRequest<O>) => OperationResult<O> | Promise<OperationResult<O>>;
};

/** The control socket: answers requests in whatever order they are done. Whoever may open it may do everything. */
export class ControlServer {
  readonly #server: Server;
  readonly #path: string;
  readonly #sockets = new Set<Socket>();

  private constructor(path: string, handlers: Handlers, log: Logger) {
    this.#path = path;
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      const frames = new FrameReader();
      socket.on('data', (chunk: Buffer) => {
        try {
          for (const message of frames.push(chunk)) void answer(message, socket, handlers, log);
        } catch (error) {
          log.warn('a client of the control socket does not speak the protocol', { error: String(error) });
          socket.destroy();
        }
      });
    });
  }

  /** Listens on a unix socket for this user alone (mode 0600). */
  static async listen(path: string, handlers: Handlers, log: Logger): Promise<ControlServer> {
    const server = new ControlServer(path, handlers, log);
    await rm(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject);
      server.#server.listen(path, resolve);
    });
    await chmod(path, 0o600);
    return server;
  }

  /** Takes no requests any more; those under way lose their client. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    await rm(this.#path, { force: true });
  }
}

async function answer(message: unknown, socket: Socket, handlers: Handlers, log: Logger): Promise<void> {
  const request = Request.safeParse(message);
  if (!request.success) {
    socket.destroy();
    return;
  }
  const { id, op, args } = request.data;
  let frame: Buffer;
  try {
    frame = encodeFrame({ id, result: await handle(op, args, handlers) });
  } catch (error) {
    const { code, message: text, remediation, cause } = AenvError.from(error, `${op} failed`);
    log.warn('a request failed', { op, code, reason: text, cause });
    frame = encodeFrame({ id, error: { code, message: text, remediation } });
  }
  if (!socket.destroyed) socket.write(frame);
}

async function handle(op: string, args: unknown, handlers: Handlers): Promise<unknown> {
  if (!Object.hasOwn(OPERATIONS, op)) throw new AenvError('internal', `this daemon has no operation '${op}'`);
  const name = op as Operation;
  const parsed = OPERATIONS[name].request.safeParse(args);
  if (!parsed.success)
    throw new AenvError('internal', `${op}: ${parsed.error.issues[0]?.message}`, { cause: parsed.error });
  return await handlers[name](parsed.data as never);
}
