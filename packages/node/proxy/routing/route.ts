import type { IncomingHttpHeaders } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { parseHostLabel } from './host-label.ts';
import { parsePort, parseSandboxId } from './names.ts';
import { parseRequestTarget } from './request-target.ts';

/** Names of the routing headers, in both families. An id of one and a port of the other go together too. */
export const SANDBOX_ID_HEADERS = ['e2b-sandbox-id', 'x-agentenv-sandbox-id'] as const;
export const SANDBOX_PORT_HEADERS = ['e2b-sandbox-port', 'x-agentenv-target-port'] as const;

export interface SandboxRoute {
  readonly kind: 'sandbox';
  readonly sandboxId: string;
  readonly port: number;
  /** what is asked of the server in the sandbox: path and query, or `*` */
  readonly path: string;
  /** the host that the client named, if it did */
  readonly host: string | undefined;
}

export type Route =
  | SandboxRoute
  /** for the daemon's own routes; `path` differs from the URL only for an absolute-form target */
  | { readonly kind: 'control'; readonly path: string }
  | { readonly kind: 'refused'; readonly error: AenvError };

export interface RoutedRequest {
  readonly url: string;
  readonly httpVersion: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
}

/**
 * Decides whom a request is for: host label, then routing headers, then `/proxy` (which needs the headers), then the
 * daemon's own routes. Pure; never throws.
 */
export function decideRoute(request: RoutedRequest): Route {
  const target = parseRequestTarget(request.url);
  if (target === undefined) return refused('The request target is neither a path nor an http URL.');
  const hosts = countHosts(request.rawHeaders);
  if (hosts > 1) return refused('The request has more than one Host header.');
  if (hosts === 0 && request.httpVersion === '1.1') return refused('The request has no Host header.');
  const host = target.authority ?? request.headers.host;

  const label = parseHostLabel(host ?? '');
  if (label.kind === 'malformed') {
    return refused(`The host label '${label.label}' is not of the form PORT-SANDBOXID.`);
  }
  if (label.kind === 'sandbox') {
    return { kind: 'sandbox', sandboxId: label.sandboxId, port: label.port, path: target.path, host };
  }

  const stripped = withoutProxyPrefix(target.path);
  const byHeaders = readRoutingHeaders(request.headers);
  if (byHeaders instanceof AenvError) return { kind: 'refused', error: byHeaders };
  if (byHeaders !== undefined) {
    return { kind: 'sandbox', ...byHeaders, path: stripped ?? target.path, host };
  }
  if (stripped !== undefined) return refused('A request to /proxy needs the routing headers.');
  return { kind: 'control', path: target.path };
}

function readRoutingHeaders(
  headers: IncomingHttpHeaders,
): { readonly sandboxId: string; readonly port: number } | undefined | AenvError {
  const ids = valuesOf(headers, SANDBOX_ID_HEADERS);
  const ports = valuesOf(headers, SANDBOX_PORT_HEADERS);
  if (ids.length === 0 && ports.length === 0) return undefined;
  if (ids.length === 0) return badRoute('A sandbox port is given, but no sandbox id.');
  if (ports.length === 0) return badRoute('A sandbox id is given, but no sandbox port.');
  if (ids.length > 1 || ports.length > 1)
    return badRoute('The routing headers of both families contradict each other.');
  const sandboxId = parseSandboxId(ids[0] ?? '');
  const port = parsePort(ports[0] ?? '');
  if (sandboxId === undefined) return badRoute('The sandbox id in the routing headers is not a sandbox id.');
  if (port === undefined) return badRoute('The sandbox port in the routing headers is not a number from 1 to 65535.');
  return { sandboxId, port };
}

/** The distinct values of these headers; a repeated header counts as one value with a comma, which no parser accepts. */
function valuesOf(headers: IncomingHttpHeaders, names: readonly string[]): readonly string[] {
  const values = new Set<string>();
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) values.add(String(value));
  }
  return [...values];
}

function withoutProxyPrefix(path: string): string | undefined {
  if (path === '/proxy') return '/';
  if (path.startsWith('/proxy/')) return path.slice('/proxy'.length);
  if (path.startsWith('/proxy?')) return `/${path.slice('/proxy'.length)}`;
  return undefined;
}

function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === 'host') count++;
  }
  return count;
}

function badRoute(message: string): AenvError {
  return new AenvError('bad_route', message);
}

function refused(message: string): Route {
  return { kind: 'refused', error: badRoute(message) };
}
