import { BOOT_ID_HEADER, HOST_SECRET_HEADER, type InitRequest } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { type EnvdAnswer, exchange } from './request.ts';

/** envd of one incarnation, as the host speaks to it. */
export interface EnvdClient {
  /** Resolves when envd answers; rejects with the signal's reason. A guest that is not there is asked again for ever. */
  waitHealthy(signal: AbortSignal): Promise<void>;
  /**
   * Hands over identity, secrets and environment.
   * @throws AenvError `boot_failed` when envd refuses; the signal's reason
   */
  init(request: InitRequest, signal: AbortSignal): Promise<InitAnswer>;
}

export interface InitAnswer {
  readonly bootId: string;
  readonly envdVersion: string;
}

export interface EnvdAddress {
  readonly address: string;
  readonly port: number;
  readonly hostSecret: string;
}

export type ConnectEnvd = (address: EnvdAddress) => EnvdClient;

const CONNECT_TIMEOUT_MS = 50;
const HEALTH_TIMEOUT_MS = 1_000;
const INIT_TIMEOUT_MS = 10_000;
const POLL_MS = { least: 5, most: 50 };
/** Share of the time waited so far that the next pause takes. */
const POLL_SHARE = 0.02;

/**
 * The pause before the next question. Each one costs the booting guest some of its one core: at 5 ms a guest under
 * emulation spends a tenth of its boot on refusing. A fiftieth of the time waited finds the moment just as well.
 */
function pollPause(waitedMs: number): number {
  return Math.min(POLL_MS.most, Math.max(POLL_MS.least, waitedMs * POLL_SHARE));
}

/** The client that dials a guest over TCP. */
export function envdOverTcp(clock: Clock): ConnectEnvd {
  return ({ address, port, hostSecret }) => ({
    async waitHealthy(signal) {
      const begin = clock.now();
      for (;;) {
        signal.throwIfAborted();
        try {
          const answer = await exchange(address, port, {
            method: 'GET',
            path: '/health',
            connectTimeoutMs: CONNECT_TIMEOUT_MS,
            timeoutMs: HEALTH_TIMEOUT_MS,
            signal,
          });
          if (answer.status >= 200 && answer.status < 300) return;
        } catch {
          // Not up yet; what it died of, if it did, comes from the VM.
        }
        await clock.sleep(pollPause(clock.now() - begin), signal);
      }
    },

    async init(request, signal) {
      for (;;) {
        signal.throwIfAborted();
        let answer: EnvdAnswer;
        try {
          answer = await exchange(address, port, {
            method: 'POST',
            path: '/init',
            headers: { [HOST_SECRET_HEADER]: hostSecret },
            body: { ...request, timestamp: new Date(clock.now()).toISOString() },
            connectTimeoutMs: CONNECT_TIMEOUT_MS,
            timeoutMs: INIT_TIMEOUT_MS,
            signal,
          });
        } catch {
          // The call can be repeated: the same secret is accepted again.
          await clock.sleep(POLL_MS.least, signal);
          continue;
        }
        if (answer.status === 503) {
          await clock.sleep(POLL_MS.least, signal);
          continue;
        }
        return readInitAnswer(answer);
      }
    },
  });
}

function readInitAnswer(answer: EnvdAnswer): InitAnswer {
  if (answer.status !== 204) {
    throw new AenvError('boot_failed', `envd refused its setup with ${answer.status}: ${answer.text.slice(0, 500)}`);
  }
  const bootId = answer.headers[BOOT_ID_HEADER];
  const envdVersion = answer.headers['x-envd-version'];
  if (typeof bootId !== 'string' || !/^[0-9a-f-]{36}$/.test(bootId)) {
    throw new AenvError('boot_failed', 'envd did not tell the boot id of its kernel');
  }
  if (typeof envdVersion !== 'string' || !/^\d+\.\d+\.\d+$/.test(envdVersion)) {
    throw new AenvError('boot_failed', 'envd did not tell its version');
  }
  return { bootId, envdVersion };
}
