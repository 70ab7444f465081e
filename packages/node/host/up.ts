import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { keyFile } from '../auth/key-file.ts';
import type { Config } from '../config/schema.ts';
import { daemonLog } from './daemon/log-file.ts';
import { assertPortFree, formatAddress } from './daemon/port.ts';
import { startDaemon } from './daemon/start.ts';
import { type DaemonState, findDaemon, isHealthy } from './daemon/state.ts';
import { formatDuration, type Output } from './terminal/output.ts';
import { Progress } from './terminal/progress.ts';

export interface UpOptions {
  readonly config: Config;
  readonly foreground: boolean;
  /** environment of the daemon, flags already in it */
  readonly env: NodeJS.ProcessEnv;
  readonly output: Output;
  readonly signal: AbortSignal;
  readonly uid: number;
  /** the daemon's main file */
  readonly entry: string;
  readonly prepare: (config: Config, progress: Progress, signal: AbortSignal) => Promise<void>;
  /** limit of `ms` until the daemon answers */
  readonly startTimeoutMs?: number;
}

/** Cleaning up after a crash and importing the base template are part of a start. */
const START_TIMEOUT_MS = 180_000;

/**
 * `aenv up`: sets the host up, starts the daemon and tells where it is. When it runs already, that is all it says.
 * @throws AenvError what is missing or failed, with the remedy
 */
export async function up(options: UpOptions): Promise<void> {
  const { config, output, signal } = options;
  const begun = Date.now();
  const running = await findRunning(config.runtime);
  if (running !== undefined) {
    output.out('The daemon runs already.');
    printAccess(running, options);
    return;
  }
  if (options.uid !== 0) {
    throw new AenvError('host_unsupported', 'microVMs, their networks and disks need root', {
      remediation: 'Run the command as root, for example with sudo.',
    });
  }
  await assertPortFree(config.listen);
  if (config.tls.cert !== undefined) await assertPortFree(config.tls.listen);
  await options.prepare(config, new Progress(output), signal);
  if (options.foreground) return runHere(options);
  const state = await startDaemon({
    entry: options.entry,
    runtime: config.runtime,
    logFile: daemonLog(config.home),
    env: options.env,
    timeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
    signal,
  });
  output.out(`The daemon runs (pid ${state.process.pid}, after ${formatDuration(Date.now() - begun)}).`);
  printAccess(state, options);
}

/** A daemon that runs and answers, given a few seconds when it is only just starting. */
async function findRunning(runtime: string): Promise<DaemonState | undefined> {
  const state = await findDaemon(runtime);
  if (state === undefined) return undefined;
  for (let attempt = 0; attempt < 5; attempt++) {
    if (await isHealthy(state.url)) return state;
    await delay(500);
    if ((await findDaemon(runtime)) === undefined) return undefined;
  }
  throw new AenvError('daemon_failed', `a daemon runs (pid ${state.process.pid}), but ${state.url} does not answer`, {
    remediation: 'End it with `aenv down`, then run `aenv up` again.',
  });
}

/** The daemon becomes this process, so that a service manager and Ctrl-C reach it directly. */
async function runHere(options: UpOptions): Promise<void> {
  Object.assign(process.env, options.env);
  await import(options.entry);
  const state = await findDaemon(options.config.runtime);
  if (state !== undefined) printAccess(state, options);
}

function printAccess(state: DaemonState, { config, env, output, foreground }: UpOptions): void {
  const fromEnv = env.AENV_API_KEY !== undefined && env.AENV_API_KEY !== '';
  output.out(`  URL   ${state.url}`);
  if (config.tls.cert !== undefined) output.out(`  TLS   https://${formatAddress(config.tls.listen)}`);
  output.out(`  key   ${fromEnv ? 'in AENV_API_KEY' : keyFile(config.home)}`);
  if (!foreground) output.out(`  log   ${config.log.file ?? daemonLog(config.home)}`);
  output.out(`  next  aenv start base`);
}
