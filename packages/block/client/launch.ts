import { spawn } from 'node:child_process';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { identify, killAndWait } from '@aenv/platform/process/identity.ts';
import { blockdFolders } from '../blockd/layout.ts';
import { type BlockdArguments, formatArguments } from '../blockd/process/arguments.ts';
import { type BlockdState, findBlockd } from '../blockd/process/state.ts';
import { BlockdConnection } from './connection.ts';

const MAIN = fileURLToPath(new URL('../blockd/main.ts', import.meta.url));
/**
 * Compiled code, which the node keeps there too. As a variable of the environment it is used by the threads as well, and
 * the compiler that strips types (tens of MB) is not loaded at all.
 */
const COMPILE_CACHE = fileURLToPath(new URL('../../../.build/compile-cache', import.meta.url));
const START_MS = 30_000;
/** The log is moved aside before a start when it is larger, so that at most two such files stay. */
const ROTATE_BYTES = 16 * 1024 * 1024;
/**
 * nice(1): each wait for a disk is a wait for this process, and guests that compute must not keep it from running.
 * setpriv(1): what it gives up it never gets again. Each program replaces itself, so the pid stays.
 */
const AS_SERVICE = ['nice', '--adjustment=-5', 'setpriv', '--no-new-privs', '--inh-caps=-all', '--'] as const;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface RunningBlockd {
  readonly state: BlockdState;
  readonly connection: BlockdConnection;
}

/** The daemon that serves a runtime folder, if one does and answers. */
export async function findRunning(runtime: string): Promise<RunningBlockd | undefined> {
  const folders = blockdFolders('/', runtime);
  const state = await findBlockd(folders.state);
  if (state === undefined) return undefined;
  try {
    return { state, connection: await BlockdConnection.open(folders.control) };
  } catch {
    return undefined;
  }
}

/**
 * Starts a daemon that outlives this process: own session, output to a file, and, for one that will be another user, no
 * way to get privileges back. Returns when it answers; all disks that were served are served again by then.
 * @throws AenvError `block_daemon_failed` with its last lines, `host_command_missing`
 */
export async function launchBlockd(
  values: BlockdArguments,
  logFile: string,
  signal?: AbortSignal,
): Promise<RunningBlockd> {
  await using log = await openLog(logFile);
  const { size: logStart } = await log.stat();
  const program = [process.execPath, MAIN, ...formatArguments(values)];
  const [file = '', ...args] = values.uid === undefined ? program : [...AS_SERVICE, ...program];
  const child = spawn(file, args, {
    detached: true,
    cwd: '/',
    env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE },
    stdio: ['ignore', log.fd, log.fd],
  });
  const ended = Promise.withResolvers<string>();
  child.once('error', (error) => ended.resolve(`could not be started: ${error.message}`));
  child.once('exit', (code, by) => ended.resolve(by === null ? `ended with exit code ${code}` : `was ended by ${by}`));
  child.unref();

  const deadline = Date.now() + START_MS;
  let problem: string | undefined;
  while (problem === undefined) {
    const running = await findRunning(values.runtime);
    if (running?.state.process.pid === child.pid && running !== undefined) return running;
    running?.connection.close();
    if (Date.now() > deadline || signal?.aborted) problem = `did not answer within ${START_MS / 1000} s`;
    else problem = await Promise.race([ended.promise, delay(20, undefined)]);
  }
  const identity = child.pid === undefined ? undefined : await identify(child.pid);
  if (identity !== undefined) await killAndWait(identity);
  signal?.throwIfAborted();
  const lines = await lastLines(logFile, logStart);
  throw new AenvError(
    'block_daemon_failed',
    `the block daemon ${problem}${lines === '' ? '' : `; its last lines:\n${lines}`}`,
  );
}

async function openLog(path: string) {
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size > ROTATE_BYTES) await rename(path, `${path}.1`);
  return await open(path, 'a+', 0o600);
}

async function lastLines(path: string, from: number): Promise<string> {
  try {
    await using file = await open(path, 'r');
    const { size } = await file.stat();
    const start = Math.max(from, size - 4096);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, size - start)), 0, size - start, start);
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-6).join('\n');
  } catch {
    return '';
  }
}
