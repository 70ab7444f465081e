import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { Connection } from './connection.ts';
import type { Export } from './export.ts';
import type { BufferPool } from './transmission/buffer-pool.ts';

/** Clients that one socket has at a time; a VMM takes one for each drive, tools some more. */
const MAX_CONNECTIONS = 16;
/** sun_path of unix(7) has 108 bytes, the last of them NUL. */
const MAX_PATH = 107;

export interface NbdServerOptions {
  /** absolute path of the unix socket; a file in its place is removed */
  readonly path: string;
  /** mode of the socket; whoever may write to it may connect */
  readonly mode: number;
  /** also found under the empty name */
  readonly export: Export;
  readonly pool: BufferPool;
  readonly log: Logger;
}

/** One export behind a socket of its own, so that file permissions decide who reaches it. */
export class NbdServer {
  readonly #server: Server;
  readonly #options: NbdServerOptions;
  readonly #connections = new Set<Connection>();

  private constructor(options: NbdServerOptions) {
    this.#options = options;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => {
      if (this.#connections.size >= MAX_CONNECTIONS) return void socket.destroy();
      const { export: target, pool, log } = options;
      const connection = new Connection(socket, {
        find: (name) => (name === '' || name === target.name ? target : undefined),
        names: () => [target.name],
        pool,
        log,
      });
      this.#connections.add(connection);
      void connection.closed.then(() => this.#connections.delete(connection));
    });
  }

  /** @throws AenvError `config_invalid` for a path that is too long for a socket */
  static async listen(options: NbdServerOptions): Promise<NbdServer> {
    if (Buffer.byteLength(options.path) > MAX_PATH) {
      throw new AenvError(
        'config_invalid',
        `the path ${options.path} is too long for a unix socket (at most ${MAX_PATH} bytes)`,
        { remediation: 'Choose a shorter runtime folder with AENV_RUNTIME.' },
      );
    }
    const server = new NbdServer(options);
    await rm(options.path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject);
      server.#server.listen(options.path, resolve);
    });
    await chmod(options.path, options.mode);
    return server;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Breaks all connections and removes the socket. Idempotent. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const connections = [...this.#connections];
    for (const connection of connections) connection.destroy();
    await Promise.all(connections.map((connection) => connection.closed));
    await closed;
    await rm(this.#options.path, { force: true });
  }
}
