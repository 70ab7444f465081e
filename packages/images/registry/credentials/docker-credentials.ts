import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isCode } from '../../errors/is-code.ts';
import type { CredentialSource, Credentials } from './contract.ts';
import { credentialsOf, type DockerConfig, dockerConfigSchema, entryFor, serverName } from './docker-config.ts';
import { askHelper } from './helper.ts';

/** Helpers of clouds ask servers of their own: their answers are kept for a while. */
const KEEP_MS = 5 * 60_000;
const MAX_KEPT = 256;

export interface DockerCredentialsOptions {
  /** path of config.json */
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly env?: NodeJS.ProcessEnv;
}

/** Where Docker keeps its configuration: DOCKER_CONFIG, else `.docker` in the home folder. */
export function dockerConfigFile(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.DOCKER_CONFIG || join(env.HOME || homedir(), '.docker'), 'config.json');
}

/**
 * The credentials that `docker login` has left: a helper of the host, then the general helper, then what is in the file
 * itself. The file is read anew for every question, so that a login counts at once.
 */
export class DockerCredentials implements CredentialSource {
  readonly #options: DockerCredentialsOptions;
  readonly #kept = new Map<string, { readonly until: number; readonly found: Promise<Credentials | undefined> }>();

  constructor(options: DockerCredentialsOptions) {
    this.#options = options;
  }

  async find(host: string, repository: string): Promise<Credentials | undefined> {
    const config = await this.#read();
    const own = entryFor(config.credHelpers, host, repository);
    if (own !== undefined) return this.#ask(own, host);
    if (config.credsStore) {
      const stored = await this.#ask(config.credsStore, host);
      if (stored !== undefined) return stored;
    }
    const entry = entryFor(config.auths, host, repository);
    return entry ? credentialsOf(entry) : undefined;
  }

  async #ask(helper: string, host: string): Promise<Credentials | undefined> {
    const { clock, env } = this.#options;
    const key = JSON.stringify([helper, host]);
    const known = this.#kept.get(key);
    if (known !== undefined && known.until > clock.now()) return known.found;
    // Not cancelled with the first who asks, since others wait for the same answer; it has a limit of its own.
    const found = askHelper(helper, serverName(host), env === undefined ? {} : { env });
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, { until: clock.now() + KEEP_MS, found });
    // Only an answer is kept, so that a login or a mended helper counts at once.
    const forget = () => this.#kept.delete(key);
    found.then((credentials) => credentials ?? forget(), forget);
    return found;
  }

  async #read(): Promise<DockerConfig> {
    const { file, log } = this.#options;
    try {
      const parsed = dockerConfigSchema.safeParse(JSON.parse(await readFile(file, 'utf8')));
      if (parsed.success) return parsed.data;
      log.warn('credentials of Docker are not of the known form', {
        file,
        member: parsed.error.issues[0]?.path.join('.'),
      });
    } catch (error) {
      // The message of a JSON error quotes the text, which may be a secret.
      if (!isCode(error, 'ENOENT')) log.warn('credentials of Docker cannot be read', { file });
    }
    return {};
  }
}
