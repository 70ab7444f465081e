import { hopByHop, type RawHeaders } from '../../proxy/headers/raw-headers.ts';
import { relayedHeaders } from '../../proxy/headers/response-headers.ts';

export interface Http1Head {
  readonly method: string;
  /** path and query, or `*` */
  readonly path: string;
  readonly headers: string[];
}

/**
 * The head of an HTTP/2 request as HTTP/1.1 has it (RFC 9113 §8.3.1): the pseudo-header fields become method, path and
 * Host, the crumbs of Cookie one field (§8.2.3). A Host field that contradicts `:authority` is kept beside it, so that the
 * router refuses both.
 */
export function toHttp1(raw: RawHeaders): Http1Head {
  const pseudo = new Map<string, string>();
  const hosts = new Set<string>();
  const cookies: string[] = [];
  const headers: string[] = [];
  const ending = hopByHop(raw);
  ending.delete('te');
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    if (name.startsWith(':')) pseudo.set(name, value);
    else if (name === 'host') hosts.add(value);
    else if (name === 'cookie') cookies.push(value);
    else if (!ending.has(name) && name !== 'http2-settings') headers.push(name, value);
  }
  const authority = pseudo.get(':authority');
  if (authority !== undefined) hosts.add(authority);
  const lines = [...hosts].flatMap((host) => ['host', host]);
  if (cookies.length > 0) headers.push('cookie', cookies.join('; '));
  return { method: pseudo.get(':method') ?? '', path: pseudo.get(':path') ?? '', headers: [...lines, ...headers] };
}

/** Whether a field of this name stands in a head. */
export function hasHeader(headers: RawHeaders, wanted: string): boolean {
  return headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === wanted);
}

/** An answer's head in the form that `respond` takes; fields that are about one connection do not exist in HTTP/2. */
export function toHttp2(status: number, raw: RawHeaders, keepTrailerField: boolean): string[] {
  const headers = relayedHeaders(raw, keepTrailerField, false);
  return [':status', String(status), ...headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))];
}

/** The same in the form that `additionalHeaders` and `sendTrailers` take; of fields that come again, all values. */
export function toFields(raw: RawHeaders): Record<string, string[]> {
  const fields: Record<string, string[]> = Object.create(null);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    fields[name] = [...(fields[name] ?? []), raw[i + 1] ?? ''];
  }
  return fields;
}
