import { createServer, type Server } from 'node:net';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';

/** An abstract socket name (unix(7)). Such names belong to the network namespace, as do the things that are locked. */
const LOCK_NAME = '\0aenv-network-change';
const WAIT_MS = 5_000;
const POLL_MS = 20;

/**
 * Runs `work` while no other instance in this network namespace does: for choices that read the host's state and then
 * change it. The lock is a socket, so the kernel frees it when its holder dies. It guards against accidents between
 * daemons that start together; because any local process could take the name, the wait is bounded and then goes on.
 */
export async function withHostLock<T>(clock: Clock, log: Logger, work: () => Promise<T>): Promise<T> {
  const lock = await take(clock, log);
  try {
    return await work();
  } finally {
    await new Promise<void>((resolve) => (lock === undefined ? resolve() : lock.close(() => resolve())));
  }
}

async function take(clock: Clock, log: Logger): Promise<Server | undefined> {
  for (let waited = 0; waited < WAIT_MS; waited += POLL_MS) {
    const lock = await tryListen();
    if (lock !== undefined) return lock;
    await clock.sleep(POLL_MS);
  }
  log.warn('another process holds the lock for changes to the host network; going on without it');
  return undefined;
}

function tryListen(): Promise<Server | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Server | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
  );
  server.listen({ path: LOCK_NAME }, () => {
    server.unref();
    resolve(server);
  });
  return promise;
}
