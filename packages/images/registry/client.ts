import { type Clock, systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { CredentialSource, Credentials } from './credentials/contract.ts';
import { Transport } from './http/transport.ts';
import { Repository } from './repository.ts';
import { DEFAULT_RETRY, type RetryPolicy } from './retry.ts';
import { Session } from './session.ts';
import type { RegistrySettings } from './settings.ts';

export interface RegistryClientOptions {
  readonly settings: RegistrySettings;
  readonly credentials: CredentialSource;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly transport?: Transport;
  readonly retry?: Partial<RetryPolicy>;
}

/** Repositories whose tokens and places are remembered. */
const MAX_KEPT = 128;

/** Reads images from registries. */
export class RegistryClient {
  readonly settings: RegistrySettings;
  readonly #options: RegistryClientOptions;
  readonly #clock: Clock;
  readonly #transport: Transport;
  readonly #kept = new Map<string, Repository>();

  constructor(options: RegistryClientOptions) {
    this.settings = options.settings;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#transport = options.transport ?? new Transport();
  }

  /**
   * @param host as `RegistryReference` has it
   * @param credentials for this repository instead of those of the host; never shown to a mirror
   */
  repository(host: string, repository: string, credentials?: Credentials): Repository {
    if (credentials !== undefined) return this.#make(host, repository, credentials);
    const key = `${host}/${repository}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    const made = this.#make(host, repository, undefined);
    this.#kept.set(key, made);
    return made;
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  #make(host: string, repository: string, credentials: Credentials | undefined): Repository {
    const mirrors = (this.settings.mirrors.get(host) ?? []).map(({ host: mirror, prefix }) =>
      this.#session(mirror, prefix === '' ? repository : `${prefix}/${repository}`, undefined),
    );
    return new Repository({
      sessions: [...mirrors, this.#session(host, repository, credentials)],
      clock: this.#clock,
      policy: { ...DEFAULT_RETRY, ...this.#options.retry },
      log: this.#options.log,
    });
  }

  #session(host: string, repository: string, own: Credentials | undefined): Session {
    return new Session({
      host,
      repository,
      settings: this.settings,
      transport: this.#transport,
      clock: this.#clock,
      credentials: () => (own === undefined ? this.#options.credentials.find(host, repository) : Promise.resolve(own)),
    });
  }
}
