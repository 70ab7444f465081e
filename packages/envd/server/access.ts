import type { IncomingMessage } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const UNAUTHORIZED = 'unauthorized access, please provide a valid access token or method signing if supported';

/** Loaded when it is first needed: it costs a tenth of the start of the whole process. */
function crypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto');
}

/** Compares without telling by its time where the difference is, nor how long the secret is. */
export function equalSecrets(given: string, expected: string): boolean {
  const digest = (text: string) => crypto().createHash('sha256').update(text).digest();
  return crypto().timingSafeEqual(digest(given), digest(expected));
}

/** The value of a header that must be there at most once. */
export function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Lets a request pass that brings the sandbox's token; without a token set, everything passes.
 * @throws AenvError `envd_unauthorized`
 */
export function requireToken(request: IncomingMessage, token: string | undefined): void {
  if (token === undefined) return;
  const given = header(request, 'x-access-token');
  if (given === undefined || !equalSecrets(given, token)) throw new AenvError('envd_unauthorized', UNAUTHORIZED);
}

export interface SignedQuery {
  readonly path: string;
  readonly operation: 'read' | 'write';
  readonly username: string;
  readonly signature: string | undefined;
  readonly expiration: string | undefined;
}

/**
 * The signature of a URL: SHA-256 over path, operation, user and token, and over the expiration (unix seconds) where
 * there is one, joined by colons. Path and user are those of the query, empty when absent.
 */
export function signUrl(query: Omit<SignedQuery, 'signature'>, token: string): string {
  const parts = [query.path, query.operation, query.username, token];
  if (query.expiration !== undefined) parts.push(query.expiration);
  return `v1_${crypto().createHash('sha256').update(parts.join(':')).digest('base64').replace(/=+$/, '')}`;
}

/**
 * Lets a request pass by token or by signed URL. A wrong token is an error even with a good signature.
 * @param now unix time in `ms`
 * @throws AenvError `envd_unauthorized`
 */
export function requireTokenOrSignature(
  request: IncomingMessage,
  query: SignedQuery,
  token: string | undefined,
  now: number,
): void {
  if (token === undefined) return;
  const given = header(request, 'x-access-token');
  const refuse = (message: string) => new AenvError('envd_unauthorized', message);
  if (given !== undefined) {
    if (equalSecrets(given, token)) return;
    throw refuse('access token present in header but does not match');
  }
  if (query.signature === undefined) throw refuse('missing signature query parameter');
  if (!equalSecrets(query.signature, signUrl(query, token))) throw refuse('invalid signature');
  if (query.expiration === undefined) return;
  const expiration = /^\d{1,15}$/.test(query.expiration) ? Number(query.expiration) : 0;
  if (expiration < now / 1000) throw refuse('signature is already expired');
}
