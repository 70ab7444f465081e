/**
 * Headers as they came, `[name, value, name, value, …]`, so that case, order and duplicates survive the way through the
 * proxy.
 */
export type RawHeaders = readonly string[];

/** Hop-by-hop fields (RFC 9110 §7.6.1); those that a Connection field names come on top. */
const HOP_BY_HOP = ['connection', 'proxy-connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade'] as const;

/**
 * Fields that frame or address the message. A Connection field that names one of them is ignored for it, or a client
 * could make the proxy and the server see different messages.
 */
const NEVER_DROPPED = new Set(['content-length', 'host', 'trailer', 'expect']);

/** Lower-case names of the fields that end at this hop. */
export function hopByHop(headers: RawHeaders): Set<string> {
  const names = new Set<string>(HOP_BY_HOP);
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() !== 'connection') continue;
    for (const token of (headers[i + 1] ?? '').split(',')) {
      const name = token.trim().toLowerCase();
      if (name !== '' && !NEVER_DROPPED.has(name)) names.add(name);
    }
  }
  return names;
}

/** Copies the fields that `keep` wants; it sees the name in lower case. */
export function filterHeaders(headers: RawHeaders, keep: (name: string, value: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (keep(name.toLowerCase(), value)) kept.push(name, value);
  }
  return kept;
}

/** `[[name, value], …]`, the form that trailers are written in. */
export function toPairs(headers: RawHeaders): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) pairs.push([headers[i] ?? '', headers[i + 1] ?? '']);
  return pairs;
}
