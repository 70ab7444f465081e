import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { ReadyCheck } from '../../templates/contract.ts';
import { exchange } from '../envd-client/request.ts';
import type { GuestService, ServiceRequest, StartService } from './contract.ts';
import { type GuestExit, GuestProcess } from './guest-process.ts';

export interface StartServiceOptions {
  readonly clock: Clock;
  /** limit of `ms` until the guest is ready; 5 minutes when absent */
  readonly readyMs?: number;
  /** port of envd; for tests */
  readonly envdPort?: number;
}

const READY_MS = 5 * 60_000;
const PROBE_TIMEOUT_MS = 5_000;
/** How long to wait after a check that did not hold: more patience the longer it takes, up to a limit. */
const PAUSE_MS = { http: { least: 20, most: 250 }, command: { least: 100, most: 2_000 } } as const;

/** Starts what a template says by way of envd, and asks the guest itself whether it is ready. */
export function createStartService(options: StartServiceOptions): StartService {
  const { clock, readyMs = READY_MS, envdPort = ENVD_PORT } = options;

  function run(cmd: string, user: string, { service, address }: ServiceRequest): GuestProcess {
    const { workdir: cwd, accessToken } = service;
    return GuestProcess.start({ host: address, port: envdPort }, { cmd, user, cwd, accessToken });
  }

  async function isReady(check: ReadyCheck, request: ServiceRequest, signal: AbortSignal): Promise<boolean> {
    if (check.kind === 'http') return answers(request.address, check, signal);
    const process = run(check.cmd, check.user, request);
    const stop = () => process.detach();
    signal.addEventListener('abort', stop, { once: true });
    try {
      return (await process.exited).code === 0;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async function waitReady(check: ReadyCheck, request: ServiceRequest, signal: AbortSignal): Promise<void> {
    const { least, most } = PAUSE_MS[check.kind];
    for (let pause: number = least; !(await isReady(check, request, signal)); pause = Math.min(most, pause * 1.2)) {
      await clock.sleep(pause, signal);
    }
  }

  return async (request) => {
    const { service, vm } = request;
    const { startCommand, ready } = service;
    const over = new AbortController();
    const limit = AbortSignal.timeout(readyMs);
    const signal = AbortSignal.any([request.signal, over.signal, limit]);
    const process = startCommand === undefined ? undefined : run(startCommand.cmd, startCommand.user, request);
    const failures = Promise.race([
      vm.exited.then(({ lastLines }) => {
        throw new AenvError('vm_died', `the VM ended while its guest got ready: ${lastLines}`);
      }),
      untilFailed(process),
      untilAborted(signal),
    ]);
    failures.catch(() => {});
    try {
      // Let go of before it runs, it would never have been asked for.
      const waiting = Promise.all([
        process?.started,
        ready === undefined ? undefined : waitReady(ready, request, signal),
      ]);
      waiting.catch(() => {});
      await Promise.race([waiting, failures]);
    } catch (error) {
      request.signal.throwIfAborted();
      if (limit.aborted) throw notInTime(service, readyMs);
      throw error;
    } finally {
      over.abort();
      process?.detach();
    }
  };
}

/** Rejects when the command fails; one that ends well has put itself into the background. */
async function untilFailed(process: GuestProcess | undefined): Promise<never> {
  const exit = await process?.exited;
  if (exit !== undefined && exit.code !== 0) throw failed(exit);
  return await new Promise<never>(() => {});
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function answers(address: string, check: ReadyCheck & { kind: 'http' }, signal: AbortSignal): Promise<boolean> {
  try {
    const { status } = await exchange(address, check.port, {
      ...{ method: 'GET', path: check.path, signal },
      connectTimeoutMs: PROBE_TIMEOUT_MS,
      timeoutMs: PROBE_TIMEOUT_MS,
    });
    return status >= 200 && status < 300;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

function failed({ status, output }: GuestExit): AenvError {
  const said = output === '' ? 'it printed nothing' : `its last output:\n${output}`;
  return new AenvError('start_command_failed', `the start command of the template failed: ${status}; ${said}`);
}

function notInTime({ ready }: GuestService, readyMs: number): AenvError {
  const check = ready?.kind === 'http' ? `port ${ready.port} did not answer` : 'the ready command did not succeed';
  return new AenvError('start_command_failed', `the sandbox was not ready within ${readyMs / 1000} s: ${check}`);
}
