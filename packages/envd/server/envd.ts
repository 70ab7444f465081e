import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Watchers } from '../filesystem/watch/watchers.ts';
import { InitHandler } from '../guest-state/init.ts';
import { StateStore } from '../guest-state/state.ts';
import { serveTunnel } from '../guest-state/tunnel.ts';
import { Attributes } from '../metadata/attributes.ts';
import { ProcessTable } from '../process/process-table.ts';
import { StandBy } from '../process/stand-by.ts';
import type { RpcServer } from '../rpc/server.ts';
import { MetricsSource } from '../system/metrics.ts';
import { Accounts } from '../users/accounts.ts';
import { Users } from '../users/users.ts';
import type { EnvdContext } from './context.ts';
import type { EnvdOptions } from './options.ts';
import { createRouter } from './router.ts';

/** A running envd. */
export interface Envd {
  readonly port: number;
  /** Ends all connections and all processes that were started here. */
  close(): Promise<void>;
}

// A connection may be idle for longer than any proxy keeps it, so that the proxy is the one that closes.
const KEEP_ALIVE_MS = 650_000;

/**
 * Starts envd and returns when it listens.
 * @throws AenvError `internal` with a damaged state file; the error of listen(2)
 */
export async function startEnvd(options: EnvdOptions): Promise<Envd> {
  const state = new StateStore(options.stateFile);
  const users = new Users(new Accounts(options.etc), () => state.current.defaultUser);
  const processes = new ProcessTable(options.processes, new StandBy(options.native));
  const attributes = new Attributes(options.native);
  const watchers = new Watchers();
  const context: EnvdContext = { options, state, users, processes, attributes, watchers, log: options.log };
  const rpc = loadOnce(async () => (await import('../rpc/load.ts')).loadRpc(context));
  const init = new InitHandler(state, options.system, options.log, {
    async warmUp() {
      attributes.warmUp();
      options.system.warmUp();
      processes.warmUp();
      await rpc();
    },
    becomeAnother: () => processes.journal.beginAnew(),
  });
  const server = createServer(
    // Uploads take as long as they take; only the headers have a time limit.
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0, headersTimeout: 60_000, noDelay: true },
    createRouter({ context, init, metrics: new MetricsSource(), hostMetrics: new MetricsSource(), rpc }),
  );
  server.on('connect', (request, socket, head) =>
    serveTunnel(request, socket, head, (candidate) => init.requireHost(candidate)),
  );
  server.on('clientError', (_error, socket) => {
    if (socket.writable) {
      const body = '{"code":400,"message":"malformed HTTP request"}';
      socket.end(
        `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
          `connection: close\r\n\r\n${body}`,
      );
    } else {
      socket.destroy();
    }
  });
  const port = await listen(server, options);
  return {
    port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      watchers.close();
      await Promise.all([processes.close(), attributes.close(), options.system.close(), closed]);
    },
  };
}

function listen(server: Server, { address, port }: EnvdOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port, backlog: 511 }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function loadOnce(load: () => Promise<RpcServer>): () => Promise<RpcServer> {
  let loaded: Promise<RpcServer> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}
