import { flushCompileCache } from 'node:module';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { parseArguments } from './arguments.ts';
import { startBlockd } from './blockd.ts';
import { jsonLogger } from './json-logger.ts';

/** The daemon as a process: arguments, signals, exit codes. Does not return before the end. */
export async function runBlockd(argv: readonly string[]): Promise<never> {
  const begin = performance.now();
  const log = jsonLogger(1, { part: 'blockd', pid: process.pid });
  process.on('uncaughtException', (error) => fail(log, 'fault of the block daemon itself', error));
  // Before the daemon becomes a user that may write there no more.
  flushCompileCache();
  try {
    const signal = Promise.withResolvers<void>();
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, signal.resolve);
    const blockd = await startBlockd(parseArguments(argv), log);
    log.info('block daemon is up', { uid: process.getuid?.(), ms: Math.round(performance.now() - begin) });
    await Promise.race([signal.promise, blockd.ended]);
    await blockd.close();
  } catch (error) {
    fail(log, 'the block daemon ends', error);
  }
  log.info('block daemon has ended');
  process.exit(0);
}

/** Nothing that is in memory can be relied on; the files can, and the next daemon starts from them. */
function fail(log: Logger, message: string, error: unknown): never {
  log.error(message, { error, code: AenvError.from(error).code });
  process.exit(1);
}
