import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  BOOT_ID_HEADER,
  HOOKS_HEADER,
  HOST_SECRET_HEADER,
  type INIT_STEPS,
  type InitRequest,
  STEPS_HEADER,
} from '@aenv/contracts/envd/host-api.ts';
import { HOOK_FOLDERS, type RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { hooksIn } from '../hooks/folder.ts';
import { equalSecrets, header } from '../server/access.ts';
import { sendEmpty } from '../server/answer.ts';
import { readJson } from '../server/body.ts';
import { describeError, type Log } from '../server/log.ts';
import type { GuestSystem } from './guest-system.ts';
import { parseInitRequest, parseTimestamp } from './init-request.ts';
import type { GuestState, StateStore } from './state.ts';

const BODY_MAX = 1024 * 1024;
const NS_PER_MS = 1e6;
// 32 bytes in hex or base64; the lower limit only keeps out what cannot be a secret.
const SECRET_MIN = 16;
const SECRET_MAX = 512;

type Step = (typeof INIT_STEPS)[number];

/** What the steps of one call took, as a header shows it. */
class Steps {
  readonly #taken: string[] = [];

  async time<T>(step: Step, work: () => T | Promise<T>): Promise<T> {
    const begin = performance.now();
    const result = await work();
    this.note(step, performance.now() - begin);
    return result;
  }

  note(step: Step, ms: number): void {
    this.#taken.push(`${step};dur=${ms.toFixed(1)}`);
  }

  toString(): string {
    return this.#taken.join(', ');
  }
}

/** What envd does besides. */
export interface InitOccasions {
  /** ahead of a capture: loads what the first call of a client needs */
  readonly warmUp: () => Promise<void>;
  /** the guest goes on as a sandbox that it was not: forgets what concerns the other one alone */
  readonly becomeAnother: () => void;
}

/** POST /init: the host tells this guest who it is and who may use it. Calls are served one after the other. */
export class InitHandler {
  readonly #state: StateStore;
  readonly #system: GuestSystem;
  readonly #log: Log;
  readonly #occasions: InitOccasions;
  #last: Promise<unknown> = Promise.resolve();
  /** the seed of the call by which programs go on */
  #wentOnBy: string | undefined;

  constructor(state: StateStore, system: GuestSystem, log: Log, occasions: InitOccasions) {
    this.#state = state;
    this.#system = system;
    this.#log = log;
    this.#occasions = occasions;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrived = process.hrtime.bigint();
    const secret = this.#claim(request);
    const init = parseInitRequest(await readJson(request, BODY_MAX));
    if (init.hostSecret !== undefined && !isSecret(init.hostSecret)) {
      throw new AenvError('invalid_request', `hostSecret must have ${SECRET_MIN} to ${SECRET_MAX} characters`);
    }
    const steps = new Steps();
    const call = { secret, init, arrived, steps, port: request.socket.remotePort ?? 0 };
    const turn = this.#last.then(() => this.#apply(call));
    this.#last = turn.catch(() => {});
    const waited = await turn;
    if (init.capture === true) await this.#occasions.warmUp();
    const headers = {
      'x-envd-version': ENVD_VERSION,
      ...(init.capture === true ? {} : { [BOOT_ID_HEADER]: this.#system.bootId() }),
      ...(init.letGo === true && init.event !== undefined
        ? { [HOOKS_HEADER]: hooksIn(HOOK_FOLDERS[init.event]).length }
        : {}),
    };
    steps.note('guest', waited + Number(process.hrtime.bigint() - arrived) / NS_PER_MS);
    sendEmpty(response, { ...headers, [STEPS_HEADER]: String(steps) });
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

  /** @returns as `GuestSystem.renew` */
  async #apply({ secret, init, arrived, steps, port }: Call): Promise<number> {
    const before = this.#state.current;
    // Two first calls at once: the second one has waited, and the secret is set by now.
    if (before.hostSecret !== undefined && !equalSecrets(secret, before.hostSecret)) throw notHost();
    const { timestamp, seed, drives, event, machineId, letGo = false } = init;
    // Time and entropy are what a clone must not run without, so a failure here fails the call.
    const waited = await steps.time('kernel', () =>
      this.#system.renew({
        time: timestamp === undefined ? undefined : { seconds: parseTimestamp(timestamp), at: arrived, port },
        seed: seed === undefined ? undefined : Buffer.from(seed, 'base64'),
      }),
    );
    if (drives !== undefined) await steps.time('drives', () => this.#system.mountDrives(drives));
    const state = merge(before, secret, init);
    await steps.time('access', () => this.#state.save(state));
    const { sandboxId } = state;
    const renamed = sandboxId !== before.sandboxId || state.hostname !== before.hostname || machineId !== undefined;
    if (sandboxId !== undefined && renamed) {
      await steps.time('identity', () => this.#setIdentity(state, sandboxId, machineId));
    }
    if (event !== undefined) await steps.time('release', () => this.#release(port, letGo, seed, event));
    return waited;
  }

  /** A root file system that takes no files still makes a sandbox that runs. */
  #setIdentity(state: GuestState, sandboxId: string, machineId: string | undefined): void {
    const { hostname = sandboxId, templateId } = state;
    try {
      this.#system.setIdentity({ hostname, sandboxId, templateId, machineId });
    } catch (error) {
      this.#log('warn', 'setting the identity failed in part', { error: describeError(error) });
    }
  }

  async #release(port: number, letGo: boolean, seed: string | undefined, event: RestoreEvent): Promise<void> {
    const again = letGo && seed !== undefined && seed === this.#wentOnBy;
    // Before its programs go on: what these do is of the new one.
    if (letGo && !again && event !== 'resume') this.#occasions.becomeAnother();
    const broken = await this.#system.release({ keepPort: again ? undefined : port, thaw: letGo });
    if (letGo) this.#wentOnBy = seed;
    // They end by themselves, only later.
    if (!broken) this.#log('warn', 'connections from before could not be broken');
  }
}

interface Call {
  readonly secret: string;
  readonly init: InitRequest;
  /** nanoseconds of CLOCK_MONOTONIC */
  readonly arrived: bigint;
  readonly steps: Steps;
  /** the host's, of the connection that the call came by */
  readonly port: number;
}

function isSecret(text: string): boolean {
  return text.length >= SECRET_MIN && text.length <= SECRET_MAX;
}

function notHost(): AenvError {
  return new AenvError('envd_unauthorized', 'this path is for the host of the sandbox only');
}

function merge(before: GuestState, hostSecret: string, init: InitRequest): GuestState {
  const { accessToken, timestamp: _timestamp, seed: _seed, capture: _capture, envVars, ...more } = init;
  const { event: _event, letGo: _letGo, machineId: _machineId, drives: _drives, ...fields } = more;
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
