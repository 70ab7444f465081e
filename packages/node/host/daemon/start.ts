import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { identify, killAndWait } from '@aenv/platform/process/identity.ts';
import { lastLogLines, openDaemonLog } from './log-file.ts';
import { type DaemonState, findDaemon, isHealthy } from './state.ts';

export interface StartDaemonOptions {
  /** the daemon's main file */
  readonly entry: string;
  readonly runtime: string;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
  /** limit of `ms` until it answers */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Starts the daemon as a process of its own session, so that it outlives this command and its terminal, and waits until
 * its API answers. A daemon that does not come up is ended again.
 * @throws AenvError what the daemon's last log lines say; the signal's reason
 */
export async function startDaemon(options: StartDaemonOptions): Promise<DaemonState> {
  await using log = await openDaemonLog(options.logFile);
  const offset = (await log.stat()).size;
  const child = spawn(process.execPath, [options.entry], {
    cwd: '/',
    detached: true,
    env: options.env,
    stdio: ['ignore', log.fd, log.fd],
  });
  const ended = Promise.withResolvers<string>();
  child.once('error', (error) => ended.resolve(`did not start: ${error.message}`));
  child.once('exit', (code, signal) => {
    ended.resolve(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`);
  });
  child.unref();

  const deadline = Date.now() + options.timeoutMs;
  let end: string | undefined;
  while (Date.now() < deadline && !options.signal?.aborted) {
    const state = await findDaemon(options.runtime);
    if (state !== undefined && state.process.pid === child.pid && (await isHealthy(state.url))) return state;
    end = await Promise.race([ended.promise, delay(50, undefined)]);
    if (end !== undefined) break;
  }
  const identity = end === undefined && child.pid !== undefined ? await identify(child.pid) : undefined;
  if (identity !== undefined) await killAndWait(identity);
  options.signal?.throwIfAborted();
  const lines = await lastLogLines(options.logFile, offset, 12);
  const what = end ?? `did not answer within ${Math.round(options.timeoutMs / 1000)} s`;
  throw new AenvError('daemon_failed', `the daemon ${what}${lines === '' ? '' : `; its last lines:\n${lines}`}`, {
    remediation: `Mend what the lines name and run \`aenv up\` again; the whole log is ${options.logFile}.`,
  });
}
