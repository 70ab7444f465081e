import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { Credentials } from '../credentials/contract.ts';
import { readBounded } from '../http/bounded.ts';
import type { HttpResponse, Reach, Transport } from '../http/transport.ts';
import { retryAfterMs } from '../retry.ts';

export interface TokenRequest {
  /** the registry, for messages */
  readonly host: string;
  readonly realm: string;
  readonly service: string | undefined;
  readonly scope: string;
  readonly credentials: Credentials | undefined;
  readonly reach: Reach;
  readonly now: number;
}

export interface Token {
  readonly token: string;
  readonly lifeMs: number;
}

const MAX_ANSWER = 256 * 1024;
const TOKEN_MS = 30_000;
/** "For backwards compatibility … a default of 60 seconds" (distribution, "Token Authentication Specification"). */
const DEFAULT_LIFE_SECONDS = 60;

const text = z.string().regex(/^[\x21-\x7e]+$/);
const answerSchema = z.object({
  token: text.nullish(),
  access_token: text.nullish(),
  expires_in: z.number().min(0).nullish(),
});

/**
 * Asks a token server: with GET and Basic credentials or none, or with POST for an identity token (distribution, "OAuth2
 * Token Authentication"). It is not followed to another place, since credentials go there.
 * @returns `refused` when it does not accept the credentials
 * @throws AenvError `registry_auth` for a realm that is not HTTPS; `registry_unavailable`, `registry_rate_limited`
 */
export async function fetchToken(transport: Transport, request: TokenRequest): Promise<Token | 'refused'> {
  const realm = realmOf(request);
  const signal = AbortSignal.timeout(TOKEN_MS);
  try {
    const response = await send(transport, request, realm, signal);
    if (response.status === 200) return await read(response, request.host);
    response.discard();
    if ([400, 401, 403, 404].includes(response.status)) return 'refused';
    const wait = retryAfterMs(response.header('retry-after'), request.now);
    throw new AenvError(
      response.status === 429 ? 'registry_rate_limited' : 'registry_unavailable',
      `token server ${realm.host} of registry ${request.host} answers ${response.status}`,
      wait === undefined ? {} : { details: { retryAfterMs: wait } },
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AenvError(
      'registry_unavailable',
      `token server ${realm.host} of registry ${request.host} does not answer`,
    );
  }
}

function send(transport: Transport, request: TokenRequest, realm: URL, signal: AbortSignal): Promise<HttpResponse> {
  const { credentials, service, scope, reach } = request;
  if (credentials?.kind === 'identity-token') {
    const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: credentials.token, scope });
    form.set('client_id', 'aenv');
    if (service !== undefined) form.set('service', service);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return transport.send({ url: realm, method: 'POST', headers, body: form.toString(), signal }, reach);
  }
  const url = new URL(realm);
  if (service !== undefined) url.searchParams.set('service', service);
  // A scope of several parts is several parameters.
  for (const part of scope.split(' ')) url.searchParams.append('scope', part);
  if (credentials?.kind !== 'password') return transport.send({ url, signal }, reach);
  url.searchParams.set('account', credentials.username);
  const value = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
  return transport.send({ url, headers: { authorization: `Basic ${value}` }, signal }, reach);
}

function realmOf(request: TokenRequest): URL {
  const url = URL.canParse(request.realm) ? new URL(request.realm) : undefined;
  const fits = url !== undefined && url.username === '' && url.password === '';
  if (fits && (url.protocol === 'https:' || (url.protocol === 'http:' && request.reach.insecure))) return url;
  const where = JSON.stringify(request.realm.replace(/[?#].*$/s, '').slice(0, 120));
  throw new AenvError('registry_auth', `registry ${request.host} names a token server that is not HTTPS: ${where}`, {
    remediation: 'If the registry is meant to be used without TLS, list it in `registry.insecure`.',
  });
}

async function read(response: HttpResponse, host: string): Promise<Token> {
  const data = await readBounded(response, MAX_ANSWER, `the answer of the token server of ${host}`);
  let value: unknown;
  try {
    value = JSON.parse(data.toString('utf8'));
  } catch {
    // The text may be a token: it is no part of an error.
  }
  const parsed = answerSchema.safeParse(value);
  const token = parsed.data?.token ?? parsed.data?.access_token;
  if (!token) throw new AenvError('registry_unavailable', `the token server of registry ${host} gives no token`);
  return { token, lifeMs: (parsed.data?.expires_in ?? DEFAULT_LIFE_SECONDS) * 1000 };
}
