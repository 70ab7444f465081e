/** The node daemon as a process: configuration, signals, crashes, exit codes. */
import { readFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { createLogger } from '../observability/logger.ts';
import { type Daemon, type DaemonOptions, startDaemon } from './assemble.ts';

const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const;

/**
 * Starts the node and returns when it listens; from then on signals end it. A start that fails ends the process with 1.
 */
export async function runNode(options: Pick<DaemonOptions, 'faults'> = {}): Promise<void> {
  const begin = performance.now();
  let config: Config;
  try {
    config = loadConfig({ env: process.env });
  } catch (error) {
    return fail(createLogger({ level: 'info' }), error);
  }
  const log = createLogger(config.log);
  crashLoud(log);
  const end = new AbortController();
  const signals = onSignals(log, end);
  try {
    const version = await productVersion();
    const daemon = await startDaemon({ config, env: process.env, version, log, signal: end.signal, ...options });
    log.info('node is up', { url: daemon.url, version, pid: process.pid, ms: Math.round(performance.now() - begin) });
    void signals.then((signal) => shutDown(daemon, signal, log));
  } catch (error) {
    if (end.signal.aborted) {
      log.info('the start was cancelled');
      process.exit(0);
    }
    fail(log, error);
  }
}

/** The first signal ends the node in order, the second one at once. */
function onSignals(log: Logger, end: AbortController): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (end.signal.aborted) {
        log.warn('ended at once; the next start cleans up', { signal });
        process.exit(EXIT_CODES[signal]);
      }
      end.abort(new AenvError('shutting_down', `the node was told to end by ${signal}`));
      resolve(signal);
    });
  }
  return promise;
}

async function shutDown(daemon: Daemon, signal: NodeJS.Signals, log: Logger): Promise<void> {
  const begin = performance.now();
  log.info('node ends', { signal });
  try {
    await daemon.close();
  } catch (error) {
    log.error('not everything could be given back', { error });
    process.exit(1);
  }
  log.info('node has ended', { ms: Math.round(performance.now() - begin) });
  process.exit(0);
}

/** A fault that nobody expected leaves nothing to rely on: the process ends, and the next start cleans up. */
function crashLoud(log: Logger): void {
  process.on('uncaughtException', (error, origin) => {
    log.error('fault of the node itself', { origin, error });
    process.exit(1);
  });
}

function fail(log: Logger, error: unknown): never {
  const { code, message, remediation, cause } = AenvError.from(error, 'unexpected fault');
  log.error('the node did not start', { code, reason: message, remediation, cause });
  process.exit(1);
}

async function productVersion(): Promise<string> {
  const text = await readFile(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
