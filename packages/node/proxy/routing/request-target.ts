export interface RequestTarget {
  /** path and query as sent, or `*` */
  readonly path: string;
  /** authority of an absolute-form target, which stands above the Host header (RFC 9112 §3.2.2) */
  readonly authority?: string;
}

/** Host and port without user information and without percent-encoding, which no host of ours has. */
const AUTHORITY = /^[A-Za-z0-9._~:[\]-]+$/;
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;

/** Takes a request target apart; undefined when it has none of the forms of RFC 9112 §3.2 that a server answers. */
export function parseRequestTarget(url: string): RequestTarget | undefined {
  if (url.startsWith('/') || url === '*') return { path: url };
  const match = ABSOLUTE.exec(url);
  if (match === null) return undefined;
  const [, authority = '', rest = ''] = match;
  if (!AUTHORITY.test(authority)) return undefined;
  return { authority, path: rest.startsWith('/') ? rest : `/${rest}` };
}
