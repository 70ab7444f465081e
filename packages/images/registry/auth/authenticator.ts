import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Credentials } from '../credentials/contract.ts';
import type { Reach, Transport } from '../http/transport.ts';
import { type Challenge, parseChallenges } from './challenge.ts';
import { fetchToken, type TokenRequest } from './token.ts';

/** A token is renewed when this share of its life has passed. */
const RENEW_AT = 0.8;

export interface AuthenticatorOptions {
  /** for messages and for the lookup of credentials */
  readonly host: string;
  readonly repository: string;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly credentials: () => Promise<Credentials | undefined>;
}

/**
 * The Authorization header for one repository. Nothing is sent until the registry asks for it; from then on a token is
 * renewed before it ends, and once more when the registry refuses it. Requests at the same time share one renewal.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  #current: { readonly header: string; readonly renewAt: number } | undefined;
  #challenge: Challenge | undefined;
  #renewal: Promise<void> | undefined;
  #hasCredentials = false;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** The value for the next request, or undefined as long as the registry has asked for none. */
  async header(reach: Reach): Promise<string | undefined> {
    const current = this.#current;
    if (current !== undefined && current.renewAt <= this.#options.clock.now()) await this.#renew(reach);
    return this.#current?.header;
  }

  /**
   * The registry has answered 401 to `rejected`: gets what it asks for.
   * @throws AenvError `registry_auth` when there is nothing (more) to show
   */
  async answer(wwwAuthenticate: readonly string[], rejected: string | undefined, reach: Reach): Promise<void> {
    // Another request may have renewed it meanwhile.
    if (this.#current !== undefined && this.#current.header !== rejected) return;
    const challenges = parseChallenges(wwwAuthenticate);
    const challenge =
      challenges.find(({ scheme, params }) => scheme === 'bearer' && params.has('realm')) ??
      challenges.find(({ scheme }) => scheme === 'basic');
    if (challenge === undefined) {
      const schemes = challenges.map(({ scheme }) => scheme).join(', ');
      throw this.refused(`asks for ${schemes === '' ? 'nothing that is known' : schemes.slice(0, 80)}`);
    }
    this.#challenge = challenge;
    await this.#renew(reach, rejected);
  }

  /** The error for a registry that gives nothing for what it is shown. */
  refused(detail: string): AenvError {
    const { host, repository } = this.#options;
    const because = detail === '' ? '' : ` (${detail})`;
    return this.#hasCredentials
      ? new AenvError('registry_auth', `credentials refused for registry ${host}: ${repository}${because}`)
      : new AenvError(
          'registry_auth',
          `registry ${host} does not give ${repository} without credentials${because}, and there are none for it`,
          { details: { anonymous: true } },
        );
  }

  #renew(reach: Reach, rejected?: string): Promise<void> {
    this.#renewal ??= this.#obtain(reach, rejected).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #obtain(reach: Reach, rejected: string | undefined): Promise<void> {
    const credentials = await this.#options.credentials();
    this.#hasCredentials = credentials !== undefined;
    if (credentials?.kind === 'registry-token') {
      return this.#show(`Bearer ${credentials.token}`, rejected);
    }
    const challenge = this.#challenge;
    if (challenge === undefined) return;
    if (challenge.scheme === 'basic') {
      if (credentials?.kind !== 'password') throw this.refused('');
      return this.#show(basic(credentials), rejected);
    }
    const token = await fetchToken(this.#options.transport, this.#tokenRequest(challenge, credentials, reach));
    if (token === 'refused') throw this.refused('by its token server');
    const now = this.#options.clock.now();
    this.#current = { header: `Bearer ${token.token}`, renewAt: now + token.lifeMs * RENEW_AT };
  }

  /** What lasts is shown once; it may have been changed since by a login. */
  #show(header: string, rejected: string | undefined): void {
    if (header === rejected) throw this.refused('');
    this.#current = { header, renewAt: Number.POSITIVE_INFINITY };
  }

  #tokenRequest(challenge: Challenge, credentials: Credentials | undefined, reach: Reach): TokenRequest {
    return {
      host: this.#options.host,
      realm: challenge.params.get('realm') ?? '',
      service: challenge.params.get('service'),
      scope: challenge.params.get('scope') ?? `repository:${this.#options.repository}:pull`,
      credentials,
      reach,
      now: this.#options.clock.now(),
    };
  }
}

function basic(credentials: { readonly username: string; readonly password: string }): string {
  return `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
}
