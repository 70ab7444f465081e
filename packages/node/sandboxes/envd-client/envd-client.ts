import {
  BOOT_ID_HEADER,
  HOOKS_HEADER,
  HOST_SECRET_HEADER,
  type InitRequest,
  STEPS_HEADER,
  SYNC_PATH,
} from '@aenv/contracts/envd/host-api.ts';
import {
  FREEZE_PATH,
  HOOKS_PATH,
  type HookResult,
  type RestoreEvent,
  UNFREEZE_PATH,
  type UnfreezeRequest,
} from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { frozenOf, hookCountOf, hookHeaderOf, hookResultsOf, stepsOf } from './answers.ts';
import { type EnvdAnswer, exchange, type GuestLine } from './request.ts';

/** envd of one incarnation, as the host speaks to it. */
export interface EnvdClient {
  /**
   * Resolves when envd answers; rejects with the signal's reason. A guest that is not there is asked again for ever.
   * @param onKernelUp called once when the guest's kernel answers in envd's place, by refusing the connection
   */
  waitHealthy(signal: AbortSignal, onKernelUp?: () => void): Promise<void>;
  /**
   * Hands over time, identity, secrets and environment, and lets programs go on if that is asked for. Where the answer
   * was on its way for so long that the guest may have heard the time late, it is told again before this returns.
   * @param secrets the host secrets that the guest may ask for, the likeliest first: a call whose answer was lost has
   *   changed it already
   * @throws AenvError `boot_failed` when envd refuses; the signal's reason
   */
  init(request: InitRequest, secrets: readonly string[], signal: AbortSignal): Promise<InitAnswer>;
  /**
   * Stops all programs of the guest before a capture. Asked once: a guest that does not do it is captured as it is.
   * @returns whether all have stopped
   */
  freeze(hostSecret: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Tells the guest the time, and lets its programs go on unless they are to `stay` as they are; asked until there is an
   * answer. A guest that goes on without an event has not heard `init` before: it is asked again while the answer takes so
   * long that it may have heard the time late.
   * @returns how many hooks it has for the event
   * @throws AenvError `restore_failed` when envd refuses; the signal's reason
   */
  unfreeze(hostSecret: string, request: Unfreeze, signal: AbortSignal): Promise<number>;
  /**
   * Runs the hooks of the event. Asked once, since hooks may not be ones that can be repeated.
   * @param timeoutMs for all of them together
   * @throws Error when there is no answer; the signal's reason
   */
  runHooks(
    hostSecret: string,
    request: { readonly event: RestoreEvent; readonly timeoutMs: number },
    signal: AbortSignal,
  ): Promise<readonly HookResult[]>;
  /**
   * Has the guest write what its file systems have in memory to its disks.
   * @throws AenvError `capture_failed` when it does not; the signal's reason
   */
  sync(secret: string, signal: AbortSignal): Promise<void>;
}

/** What of a call to go on is up to the caller. */
export type Unfreeze = Pick<UnfreezeRequest, 'event' | 'stay'>;

export interface InitAnswer {
  /** of the guest's kernel; a guest that is about to be captured has none yet */
  readonly bootId?: string;
  /** that there are for the event, where programs were let go on; an envd from before there was `letGo` tells none */
  readonly hooks?: number;
  readonly envdVersion: string;
  /** `ms` that the guest took for each of its steps */
  readonly steps: Readonly<Record<string, number>>;
}

export interface EnvdAddress {
  readonly address: string;
  readonly port: number;
  /** that its calls share; absent: each has a connection of its own */
  readonly line?: GuestLine;
}

export type ConnectEnvd = (address: EnvdAddress) => EnvdClient;

const HEALTH_TIMEOUT_MS = 5_000;
const INIT_TIMEOUT_MS = 15_000;
/** Once the guest has answered, a handshake only fails when it is starved of its core. */
const INIT_CONNECT_MS = 1_000;
const INIT_RETRY_MS = 20;
/** A guest that is not frozen by then is captured as it is. */
const FREEZE_TIMEOUT_MS = 3_000;
/** What the answer to hooks may take longer than the hooks. */
const HOOKS_SPARE_MS = 5_000;
const HOOKS_ANSWER_BYTES = 1024 * 1024;
/** A guest's clock may be behind by what a call took on its way. One that is starved of its core is told again. */
export const TIME_LATE_MS = 750;
const TIME_CALLS_MAX = 6;
/** A guest may have all of its memory to write. */
const SYNC_TIMEOUT_MS = 120_000;

/**
 * How to ask the next time, from the time waited so far. A question that is too hasty costs the booting guest some of
 * its one core (at 5 ms a guest under emulation spends a tenth of its boot on refusing), and one that is given up too
 * early never succeeds on a busy host. Both limits grow with the wait, so that they cost a small share of it.
 */
function patience(waitedMs: number): { readonly pauseMs: number; readonly connectMs: number } {
  return { pauseMs: between(5, waitedMs / 50, 50), connectMs: between(50, waitedMs / 20, 1_000) };
}

const between = (least: number, value: number, most: number): number => Math.min(most, Math.max(least, value));

/** The client that dials a guest over TCP. */
export function envdOverTcp(clock: Clock): ConnectEnvd {
  return (guest) => ({
    async waitHealthy(signal, onKernelUp) {
      const begin = clock.now();
      let kernelUp = false;
      for (;;) {
        signal.throwIfAborted();
        const { pauseMs, connectMs } = patience(clock.now() - begin);
        try {
          const answer = await exchange(guest.address, guest.port, {
            method: 'GET',
            path: '/health',
            connectTimeoutMs: connectMs,
            timeoutMs: HEALTH_TIMEOUT_MS,
            signal,
          });
          if (answer.status >= 200 && answer.status < 300) return;
        } catch (error) {
          // Not up yet; what it died of, if it did, comes from the VM.
          if (!kernelUp && isRefused(error)) {
            kernelUp = true;
            onKernelUp?.();
          }
        }
        await clock.sleep(pauseMs, signal);
      }
    },

    async init(request, secrets, signal) {
      const { answer, ms } = await tellTime(guest, { path: '/init', body: request }, secrets, signal);
      const settled = readInitAnswer(answer);
      // What the guest did in this time, it did after it had heard it.
      if (ms - (settled.steps.guest ?? 0) > TIME_LATE_MS) {
        const call = { path: UNFREEZE_PATH, body: { stay: true } satisfies Unfreeze };
        const known = request.hostSecret === undefined ? secrets : [request.hostSecret];
        await untilInTime(() => tellTime(guest, call, known, signal));
      }
      return settled;
    },

    async freeze(hostSecret, signal) {
      const answer = await exchange(guest.address, guest.port, {
        ...{ method: 'POST', path: FREEZE_PATH, headers: { [HOST_SECRET_HEADER]: hostSecret } },
        ...{ connectTimeoutMs: FREEZE_TIMEOUT_MS, timeoutMs: FREEZE_TIMEOUT_MS, signal, agent: guest.line?.agent },
      });
      return frozenOf(answer);
    },

    async unfreeze(hostSecret, request, signal) {
      const tell = () => tellTime(guest, { path: UNFREEZE_PATH, body: request }, [hostSecret], signal);
      const knowsTime = request.event !== undefined || request.stay === true;
      const { answer } = knowsTime ? await tell() : await untilInTime(tell);
      return hookCountOf(answer);
    },

    async runHooks(hostSecret, body, signal) {
      const answer = await exchange(guest.address, guest.port, {
        ...{ method: 'POST', path: HOOKS_PATH, headers: { [HOST_SECRET_HEADER]: hostSecret }, body },
        ...{ connectTimeoutMs: INIT_TIMEOUT_MS, timeoutMs: body.timeoutMs + HOOKS_SPARE_MS },
        ...{ maxAnswerBytes: HOOKS_ANSWER_BYTES, signal },
      });
      return hookResultsOf(answer);
    },

    async sync(secret, signal) {
      const refuse = (why: string, cause?: unknown) =>
        new AenvError('capture_failed', `the guest could not write its files to its disk: ${why}`, { cause });
      const answer = await exchange(guest.address, guest.port, {
        ...{ method: 'POST', path: SYNC_PATH, headers: { [HOST_SECRET_HEADER]: secret } },
        ...{ connectTimeoutMs: HEALTH_TIMEOUT_MS, timeoutMs: SYNC_TIMEOUT_MS, signal },
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw refuse(error instanceof Error ? error.message : String(error), error);
      });
      if (answer.status !== 204) throw refuse(`envd answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    },
  });

  /** A call that brings the time, read when it goes out. */
  async function tellTime(
    guest: EnvdAddress,
    { path, body }: { readonly path: string; readonly body: object },
    secrets: readonly string[],
    signal: AbortSignal,
  ): Promise<Told> {
    let told = 0;
    const timed = () => {
      told = clock.now();
      return { ...body, timestamp: new Date(told).toISOString() };
    };
    const answer = await post(guest, { path, body: timed }, secrets, signal);
    return { answer, ms: clock.now() - told };
  }

  /** Asks until there is an answer; the call can be repeated. A secret that the guest does not know is left out then. */
  async function post(
    { address, port, line }: EnvdAddress,
    { path, body }: { readonly path: string; readonly body: () => object },
    secrets: readonly string[],
    signal: AbortSignal,
  ): Promise<EnvdAnswer> {
    let next = 0;
    for (;;) {
      signal.throwIfAborted();
      let answer: EnvdAnswer;
      try {
        answer = await exchange(address, port, {
          method: 'POST',
          path,
          headers: { [HOST_SECRET_HEADER]: secrets[next] ?? '' },
          body,
          connectTimeoutMs: INIT_CONNECT_MS,
          timeoutMs: INIT_TIMEOUT_MS,
          signal,
          agent: line?.agent,
        });
      } catch {
        await clock.sleep(INIT_RETRY_MS, signal);
        continue;
      }
      if (answer.status === 401 && next + 1 < secrets.length) next++;
      else if (answer.status !== 503) return answer;
      else await clock.sleep(INIT_RETRY_MS, signal);
    }
  }
}

interface Told {
  readonly answer: EnvdAnswer;
  /** from when the time was read until the answer had come */
  readonly ms: number;
}

/** Bounded: on a host that is always busy a clock that is a second late is better than no sandbox. */
async function untilInTime(tell: () => Promise<Told>): Promise<Told> {
  for (let calls = 1; ; calls++) {
    const told = await tell();
    if (told.ms <= TIME_LATE_MS || calls === TIME_CALLS_MAX) return told;
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}

function readInitAnswer(answer: EnvdAnswer): InitAnswer {
  if (answer.status === 422) throw new AenvError('drive_unusable', messageOf(answer.text));
  if (answer.status !== 204) {
    throw new AenvError('boot_failed', `envd refused its setup with ${answer.status}: ${answer.text.slice(0, 500)}`);
  }
  const bootId = answer.headers[BOOT_ID_HEADER];
  const envdVersion = answer.headers['x-envd-version'];
  if (bootId !== undefined && !(typeof bootId === 'string' && /^[0-9a-f-]{36}$/.test(bootId))) {
    throw new AenvError('boot_failed', 'envd did not tell the boot id of its kernel');
  }
  if (typeof envdVersion !== 'string' || !/^\d+\.\d+\.\d+$/.test(envdVersion)) {
    throw new AenvError('boot_failed', 'envd did not tell its version');
  }
  const steps = stepsOf(answer.headers[STEPS_HEADER]);
  const hooks = hookHeaderOf(answer.headers[HOOKS_HEADER]);
  return {
    ...{ envdVersion, steps },
    ...(bootId === undefined ? {} : { bootId }),
    ...(hooks === undefined ? {} : { hooks }),
  };
}

/** Of an error of envd. The text is a guest's: it is read with care. */
function messageOf(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && 'message' in body) return String(body.message).slice(0, 500);
  } catch {
    // It is shown as it is.
  }
  return text.slice(0, 500);
}
