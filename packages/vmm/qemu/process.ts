import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { identify, isAlive, killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';

/** How a process ended; both null when it was not our child, since only a parent is told. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A VMM process, ours or one that an earlier daemon started. */
export interface VmmProcess {
  readonly identity: ProcessIdentity;
  /** Resolves once, when it is gone. */
  readonly ended: Promise<ProcessEnd>;
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** From the end of the control socket to the end of the process, which has to give back its memory. */
const END_AFTER_SOCKET_MS = 5_000;

/**
 * Starts a process that outlives this one: own session, output to a file, nothing inherited but PATH and `env`.
 * @throws AenvError `host_command_missing`, `host_command_failed`
 */
export async function startProcess(
  argv: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  outputFd: number,
): Promise<VmmProcess> {
  const [file, ...args] = argv;
  const child = spawn(file, args, {
    detached: true,
    cwd: '/',
    env: { ...env, PATH },
    stdio: ['ignore', outputFd, outputFd],
  });
  const ended = childEnd(child);
  ended.catch(() => {});
  child.unref();
  if (child.pid === undefined) {
    await ended;
    throw new AenvError('host_command_failed', `${file} could not be started`);
  }
  // A child stays a zombie until Node has seen its end, so its start time can be read unless it has ended already.
  const identity = await identify(child.pid);
  if (identity !== undefined) return { identity, ended };
  return { identity: { pid: child.pid, startTime: 0 }, ended };
}

function childEnd(child: ChildProcess): Promise<ProcessEnd> {
  const { promise, resolve, reject } = Promise.withResolvers<ProcessEnd>();
  child.once('exit', (code, signal) => resolve({ code, signal }));
  child.once('error', (error: NodeJS.ErrnoException) => {
    const code = error.code === 'ENOENT' ? 'host_command_missing' : 'host_command_failed';
    reject(new AenvError(code, `${child.spawnfile}: ${error.message}`, { cause: error }));
  });
  return promise;
}

/** A process of an earlier daemon. Nobody reports its end to us: its control socket does, and then its pid. */
export function adoptProcess(identity: ProcessIdentity, socketClosed: Promise<void>): VmmProcess {
  return { identity, ended: watchEnd(identity, socketClosed) };
}

async function watchEnd(identity: ProcessIdentity, socketClosed: Promise<void>): Promise<ProcessEnd> {
  await socketClosed;
  await endAfterSocket(identity);
  while (await isAlive(identity)) await delay(1_000);
  return { code: null, signal: null };
}

/**
 * To be called when the control socket of a process has closed. It is about to end; if not, nobody can manage it any
 * more, so it is killed.
 */
export async function endAfterSocket(identity: ProcessIdentity): Promise<void> {
  const deadline = Date.now() + END_AFTER_SOCKET_MS;
  while (await isAlive(identity)) {
    if (Date.now() > deadline) {
      await killAndWait(identity);
      return;
    }
    await delay(20);
  }
}
