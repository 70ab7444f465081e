import type { IncomingMessage, ServerResponse } from 'node:http';
import { BOOT_ID_HEADER, HOST_SECRET_HEADER, type InitRequest } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { equalSecrets, header } from '../server/access.ts';
import { sendEmpty } from '../server/answer.ts';
import { readJson } from '../server/body.ts';
import { describeError, type Log } from '../server/log.ts';
import type { GuestSystem } from './guest-system.ts';
import { parseInitRequest, parseTimestamp } from './init-request.ts';
import type { GuestState, StateStore } from './state.ts';

const BODY_MAX = 1024 * 1024;
// 32 bytes in hex or base64; the lower limit only keeps out what cannot be a secret.
const SECRET_MIN = 16;
const SECRET_MAX = 512;

/** POST /init: the host tells this guest who it is and who may use it. Calls are served one after the other. */
export class InitHandler {
  readonly #state: StateStore;
  readonly #system: GuestSystem;
  readonly #log: Log;
  readonly #warmUp: () => Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  /** @param warmUp loads what the first call of a client needs */
  constructor(state: StateStore, system: GuestSystem, log: Log, warmUp: () => Promise<void>) {
    this.#state = state;
    this.#system = system;
    this.#log = log;
    this.#warmUp = warmUp;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrived = performance.now();
    const secret = this.#claim(request);
    const init = parseInitRequest(await readJson(request, BODY_MAX));
    if (init.hostSecret !== undefined && !isSecret(init.hostSecret)) {
      throw new AenvError('invalid_request', `hostSecret must have ${SECRET_MIN} to ${SECRET_MAX} characters`);
    }
    const turn = this.#last.then(() => this.#apply(secret, init, arrived));
    this.#last = turn.catch(() => {});
    await turn;
    if (init.capture === true) await this.#warmUp();
    sendEmpty(response, {
      'x-envd-version': ENVD_VERSION,
      ...(init.capture === true ? {} : { [BOOT_ID_HEADER]: await this.#system.bootId() }),
    });
  }

  /**
   * Lets only the host pass.
   * @throws AenvError `envd_unauthorized`
   */
  requireHost(request: IncomingMessage): void {
    const expected = this.#state.current.hostSecret;
    if (expected === undefined || !equalSecrets(header(request, HOST_SECRET_HEADER) ?? '', expected)) throw notHost();
  }

  /** The secret that the call brings. The first one may be any: no code of the user runs before it. */
  #claim(request: IncomingMessage): string {
    const given = header(request, HOST_SECRET_HEADER) ?? '';
    if (this.#state.current.hostSecret !== undefined) this.requireHost(request);
    else if (!isSecret(given)) throw notHost();
    return given;
  }

  async #apply(secret: string, init: InitRequest, arrived: number): Promise<void> {
    const before = this.#state.current;
    // Two first calls at once: the second one has waited, and the secret is set by now.
    if (before.hostSecret !== undefined && !equalSecrets(secret, before.hostSecret)) throw notHost();
    // Time and entropy are what a clone must not run without, so a failure here fails the call.
    if (init.timestamp !== undefined) await this.#setClock(init.timestamp, arrived);
    if (init.seed !== undefined) await this.#system.reseed(Buffer.from(init.seed, 'base64'));
    if (init.drives !== undefined) await this.#system.mountDrives(init.drives);
    const state = merge(before, secret, init);
    this.#state.save(state);
    if (state.sandboxId !== undefined && (state.sandboxId !== before.sandboxId || state.hostname !== before.hostname)) {
      await this.#setIdentity(state, state.sandboxId);
    }
  }

  async #setClock(timestamp: string, arrived: number): Promise<void> {
    const { seconds, nanoseconds } = parseTimestamp(timestamp);
    const elapsed = Math.round((performance.now() - arrived) * 1e6);
    const total = BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds + elapsed);
    const fraction = String(total % 1_000_000_000n).padStart(9, '0');
    await this.#system.setClock(`${total / 1_000_000_000n}.${fraction}`);
  }

  /** A root file system that takes no files still makes a sandbox that runs. */
  async #setIdentity(state: GuestState, sandboxId: string): Promise<void> {
    const identity = { hostname: state.hostname ?? sandboxId, sandboxId, templateId: state.templateId };
    try {
      await this.#system.setIdentity(identity);
    } catch (error) {
      this.#log('warn', 'setting the identity failed in part', { error: describeError(error) });
    }
  }
}

function isSecret(text: string): boolean {
  return text.length >= SECRET_MIN && text.length <= SECRET_MAX;
}

function notHost(): AenvError {
  return new AenvError('envd_unauthorized', 'this path is for the host of the sandbox only');
}

function merge(before: GuestState, hostSecret: string, init: InitRequest): GuestState {
  const {
    accessToken,
    timestamp: _timestamp,
    seed: _seed,
    capture: _capture,
    drives: _drives,
    envVars,
    ...fields
  } = init;
  const { accessToken: token, ...rest } = before;
  const next = accessToken === undefined ? token : (accessToken ?? undefined);
  return {
    ...rest,
    hostSecret,
    ...fields,
    ...(next === undefined ? {} : { accessToken: next }),
    envVars: envVars ?? before.envVars,
  };
}
