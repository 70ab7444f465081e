import { CODE_INTERPRETER } from '@aenv/code-interpreter/contract.ts';
import { HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { RouteTarget } from '../contract.ts';
import { SANDBOX_ID_HEADERS, SANDBOX_PORT_HEADERS, type SandboxRoute } from '../routing/route.ts';
import { type Framing, isBodyless } from './framing.ts';
import { filterHeaders, hopByHop, type RawHeaders } from './raw-headers.ts';

/** Carries the token of a private sandbox. */
export const TRAFFIC_TOKEN_HEADER = 'e2b-traffic-access-token';

/** What the platform speaks with its clients about; a server in the sandbox must not see it. */
const PLATFORM_ONLY = new Set<string>([
  ...SANDBOX_ID_HEADERS,
  ...SANDBOX_PORT_HEADERS,
  TRAFFIC_TOKEN_HEADER,
  HOST_SECRET_HEADER,
]);

const PORT_PLACEHOLDER = /\$\{PORT\}/g;

const REPLACED = new Set(['host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']);

export interface ForwardedRequest {
  readonly method: string;
  readonly rawHeaders: RawHeaders;
  readonly framing: Framing;
  /** address of the client's socket */
  readonly clientAddress: string | undefined;
  /** whether the client's connection is TLS */
  readonly secure: boolean;
  /** whether the Upgrade field is passed on */
  readonly upgrade: boolean;
}

/** The headers that the server in the sandbox gets, in the form that `http.request` takes as an array. */
export function forwardedHeaders(request: ForwardedRequest, route: SandboxRoute, target: RouteTarget): string[] {
  const ending = hopByHop(request.rawHeaders);
  const original = { for: '', proto: '', te: '', upgrade: '' };
  const kept = filterHeaders(request.rawHeaders, (name, value) => {
    if (name === 'x-forwarded-for') original.for += original.for === '' ? value : `, ${value}`;
    if (name === 'x-forwarded-proto') original.proto = value.trim().toLowerCase();
    if (name === 'te') original.te = value;
    if (name === 'upgrade') original.upgrade = value;
    return !ending.has(name) && !REPLACED.has(name) && !isPlatformOnly(name, value, route);
  });

  const host = route.host ?? `localhost:${route.port}`;
  const headers = ['Host', target.maskRequestHost?.replaceAll(PORT_PLACEHOLDER, String(route.port)) ?? host, ...kept];
  const forwardedFor = [original.for, request.clientAddress?.replace(/^::ffff:/, '') ?? '']
    .filter((part) => part !== '')
    .join(', ');
  if (forwardedFor !== '') headers.push('X-Forwarded-For', forwardedFor);
  headers.push('X-Forwarded-Host', host);
  // A TLS terminator in front of the daemon says https; what it says is only about the client's own request.
  const isProto = original.proto === 'https' || original.proto === 'http';
  headers.push('X-Forwarded-Proto', isProto ? original.proto : request.secure ? 'https' : 'http');

  if (/(?:^|,)\s*trailers\s*(?:;|,|$)/i.test(original.te)) headers.push('TE', 'trailers');
  if (request.upgrade) headers.push('Connection', 'Upgrade', 'Upgrade', original.upgrade);
  if (request.framing === 'chunked') headers.push('Transfer-Encoding', 'chunked');
  if (request.framing === 'none' && !isBodyless(request.method) && !hasField(kept, 'content-length')) {
    headers.push('Content-Length', '0');
  }
  return headers;
}

/** Fields of request trailers that may pass: nothing that frames, routes or authenticates (RFC 9110 §6.5.1). */
export function forwardedTrailers(trailers: RawHeaders): string[] {
  return filterHeaders(
    trailers,
    (name, value) =>
      !PLATFORM_ONLY.has(name) &&
      !REPLACED.has(name) &&
      !isPlatformKey(name, value) &&
      !['content-length', 'transfer-encoding', 'connection', 'authorization', 'x-access-token', 'te'].includes(name),
  );
}

function isPlatformOnly(name: string, value: string, route: SandboxRoute): boolean {
  // To a server that does not check this token it would be a gift.
  if (name === 'x-access-token') return !checksToken(route);
  return PLATFORM_ONLY.has(name) || isPlatformKey(name, value);
}

/** envd does, and the code interpreter has envd do it before it runs anything. */
function checksToken({ port, path }: SandboxRoute): boolean {
  return port === ENVD_PORT || (port === CODE_INTERPRETER.port && /^\/execute(?:\?|$)/.test(path));
}

/** An app may have API keys of its own in this header; the platform's are told by their form. */
function isPlatformKey(name: string, value: string): boolean {
  return name === 'x-api-key' && value.trim().toLowerCase().startsWith('e2b_');
}

function hasField(headers: RawHeaders, wanted: string): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === wanted) return true;
  }
  return false;
}
