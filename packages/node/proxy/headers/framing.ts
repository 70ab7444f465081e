import type { IncomingHttpHeaders } from 'node:http';

/** How the body of a request is delimited; `unsupported` for a transfer coding other than chunked. */
export type Framing = 'none' | 'length' | 'chunked' | 'unsupported';

export function requestFraming(headers: IncomingHttpHeaders): Framing {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) return coding.trim().toLowerCase() === 'chunked' ? 'chunked' : 'unsupported';
  const length = headers['content-length'];
  return length === undefined || /^0+$/.test(length) ? 'none' : 'length';
}

/** Methods for which Node sends no body unless told so; with others it would add `Transfer-Encoding: chunked` by itself. */
export function isBodyless(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'DELETE' || method === 'OPTIONS' || method === 'TRACE';
}
