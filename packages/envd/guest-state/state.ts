import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** What the host has told this envd. Kept in a file, so that a restarted envd does not forget who may do what. */
export interface GuestState {
  /** set by the first /init; later calls must bring it */
  readonly hostSecret?: string;
  /** clients must bring it; absent opens envd to whoever reaches it */
  readonly accessToken?: string;
  readonly defaultUser?: string;
  readonly defaultWorkdir?: string;
  readonly sandboxId?: string;
  readonly templateId?: string;
  readonly hostname?: string;
  readonly envVars: Readonly<Record<string, string>>;
}

const VERSION = 1;

/** The state in memory and on disk. The file is on a tmpfs and readable for root only. */
export class StateStore {
  readonly #path: string;
  #current: GuestState;

  /**
   * @throws AenvError `internal` when there is a file that cannot be read: starting with an empty state would open the
   *   sandbox to everyone
   */
  constructor(path: string) {
    this.#path = path;
    this.#current = load(path);
  }

  get current(): GuestState {
    return this.#current;
  }

  /** Durable against a crash of envd; a power cut takes the tmpfs and the whole guest with it. */
  save(state: GuestState): void {
    const temporary = `${this.#path}.new`;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o755 });
    writeFileSync(temporary, JSON.stringify({ version: VERSION, ...state }), { mode: 0o600 });
    chmodSync(temporary, 0o600);
    renameSync(temporary, this.#path);
    this.#current = state;
  }

  /** Variables that name the sandbox to its processes. */
  platformEnvironment(): Record<string, string> {
    const { sandboxId, templateId } = this.#current;
    return {
      E2B_SANDBOX: 'true',
      ...(sandboxId === undefined ? {} : { E2B_SANDBOX_ID: sandboxId }),
      ...(templateId === undefined ? {} : { E2B_TEMPLATE_ID: templateId }),
    };
  }
}

const TEXT_FIELDS = [
  'hostSecret',
  'accessToken',
  'defaultUser',
  'defaultWorkdir',
  'sandboxId',
  'templateId',
  'hostname',
] as const;

function load(path: string): GuestState {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { envVars: {} };
    throw new AenvError('internal', `the state file ${path} cannot be read`, { cause: error });
  }
  const value = parse(text);
  if (!isRecord(value) || value.version !== VERSION || !isStringMap(value.envVars)) {
    throw new AenvError('internal', `the state file ${path} is damaged`);
  }
  const state: Record<string, string> = {};
  for (const field of TEXT_FIELDS) {
    const text = value[field];
    if (typeof text === 'string') state[field] = text;
    else if (text !== undefined) throw new AenvError('internal', `the state file ${path} is damaged at ${field}`);
  }
  return { ...state, envVars: value.envVars };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isStringMap(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'string');
}
