import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { Authenticator } from './auth/authenticator.ts';
import type { Credentials } from './credentials/contract.ts';
import { errorText } from './http/bounded.ts';
import type { HttpResponse, Transport } from './http/transport.ts';
import { locate, type Place } from './place.ts';
import { retryAfterMs } from './retry.ts';
import type { RegistrySettings } from './settings.ts';

const MAX_REDIRECTS = 5;
const MAX_RENEWALS = 2;
const REDIRECTS = [301, 302, 303, 307, 308];
/** A signed URL that a blob was redirected to is used again for this long. */
const LOCATION_MS = 60_000;
const MAX_LOCATIONS = 256;

export interface SessionOptions {
  readonly host: string;
  /** as this host calls it */
  readonly repository: string;
  readonly settings: RegistrySettings;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly credentials: () => Promise<Credentials | undefined>;
}

export interface Ask {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** the place that this was redirected to the last time may be asked directly */
  readonly reuseLocation?: boolean;
}

/** Requests for one repository of one host: finds the host, shows credentials where they belong, follows redirects. */
export class Session {
  readonly host: string;
  readonly repository: string;
  readonly #options: SessionOptions;
  readonly #auth: Authenticator;
  readonly #locations = new Map<string, { readonly url: URL; readonly until: number }>();
  #place: Promise<Place> | undefined;

  constructor(options: SessionOptions) {
    this.host = options.host;
    this.repository = options.repository;
    this.#options = options;
    this.#auth = new Authenticator(options);
  }

  /**
   * GET of `v2/REPOSITORY/PATH`.
   * @returns an answer with status 200 or 206
   * @throws AenvError `image_not_found`, `registry_auth`, `registry_unavailable`, `registry_rate_limited`,
   *   `registry_untrusted`, `registry_address_refused`; the signal's reason
   */
  async get(path: string, ask: Ask = {}): Promise<HttpResponse> {
    const place = await this.#located();
    const known = ask.reuseLocation === true ? this.#location(path) : undefined;
    if (known !== undefined) {
      const response = await this.#follow(known, place, ask);
      if (response.status === 200 || response.status === 206) return response;
      // Signed URLs end, mostly with 403: the registry knows a new one.
      response.discard();
      this.#locations.delete(path);
    }
    const url = new URL(`v2/${this.repository}/${path}`, place.base);
    const first = await this.#authorized(url, place, ask);
    if (!REDIRECTS.includes(first.status)) return this.#checked(first, path, true);
    const target = redirectTarget(first, place);
    const response = await this.#checked(await this.#follow(target, place, ask), path, false);
    if (ask.reuseLocation === true && response.url.origin !== url.origin) this.#remember(path, response.url);
    return response;
  }

  #located(): Promise<Place> {
    this.#place ??= locate(this.#options.transport, this.#options.settings, this.host);
    this.#place.catch(() => {
      this.#place = undefined;
    });
    return this.#place;
  }

  async #authorized(url: URL, place: Place, ask: Ask): Promise<HttpResponse> {
    for (let renewals = 0; ; renewals++) {
      const header = await this.#auth.header(place.reach);
      const response = await this.#send(url, place, ask, header);
      if (response.status !== 401) return response;
      const challenges = response.headers('www-authenticate');
      if (renewals === MAX_RENEWALS) throw this.#auth.refused(await errorText(response));
      response.discard();
      await this.#auth.answer(challenges, header, place.reach);
      ask.signal?.throwIfAborted();
    }
  }

  /** Goes where the registry leads. Credentials go along only within the registry itself. */
  async #follow(url: URL, place: Place, ask: Ask): Promise<HttpResponse> {
    let target = url;
    for (let count = 0; count < MAX_REDIRECTS; count++) {
      const response =
        target.origin === place.base.origin
          ? await this.#authorized(target, place, ask)
          : await this.#send(target, place, ask, undefined);
      if (!REDIRECTS.includes(response.status)) return response;
      target = redirectTarget(response, place);
    }
    throw new AenvError('registry_unavailable', `${this.host}: leads on and on (${MAX_REDIRECTS} redirects)`);
  }

  #send(url: URL, place: Place, ask: Ask, authorization: string | undefined): Promise<HttpResponse> {
    const headers = { ...ask.headers, ...(authorization === undefined ? {} : { authorization }) };
    return this.#options.transport.send({ url, headers, signal: ask.signal }, place.reach);
  }

  /** @param own whether the registry itself has answered, and not a host that it leads to */
  async #checked(response: HttpResponse, path: string, own: boolean): Promise<HttpResponse> {
    const { status } = response;
    if (status === 200 || status === 206) return response;
    const said = await errorText(response);
    const what = `${this.host}/${this.repository} ${path}`;
    const detail = said === '' ? '' : ` (${said})`;
    if (status === 404 && own) throw new AenvError('image_not_found', `${what}: there is no such image${detail}`);
    if (own && (status === 401 || status === 403)) throw this.#auth.refused(said);
    if (status === 416) {
      throw new AenvError('digest_mismatch', `${response.url.host}: ${path} is shorter than it is said to be`);
    }
    const wait = retryAfterMs(response.header('retry-after'), this.#options.clock.now());
    const seconds = wait === undefined ? '' : `, come again in ${Math.ceil(wait / 1000)} s`;
    throw new AenvError(
      status === 429 ? 'registry_rate_limited' : 'registry_unavailable',
      `${response.url.host} answers ${status} for ${what}${detail}${seconds}`,
      { details: { status, ...(wait === undefined ? {} : { retryAfterMs: wait }) } },
    );
  }

  #location(path: string): URL | undefined {
    const known = this.#locations.get(path);
    return known !== undefined && known.until > this.#options.clock.now() ? known.url : undefined;
  }

  #remember(path: string, url: URL): void {
    if (this.#locations.size >= MAX_LOCATIONS) this.#locations.clear();
    this.#locations.set(path, { url, until: this.#options.clock.now() + LOCATION_MS });
  }
}

/** Where an answer leads. From TLS only to TLS, unless the registry is one without it. */
function redirectTarget(response: HttpResponse, place: Place): URL {
  const location = response.header('location');
  response.discard();
  const url =
    location !== undefined && URL.canParse(location, response.url.href) ? new URL(location, response.url) : undefined;
  const fits = url !== undefined && url.username === '' && url.password === '';
  if (fits && (url.protocol === 'https:' || (url.protocol === 'http:' && place.reach.insecure))) return url;
  throw new AenvError('registry_unavailable', `${response.url.host}: leads to a place that is not HTTPS`, {
    details: { reason: 'no_https' },
  });
}
