import { type ClientRequest, request } from 'node:http';
import type { Framing } from '../headers/framing.ts';
import { forwardedHeaders } from '../headers/request-headers.ts';
import type { GuestRequestOptions } from '../incarnations/guest-agent.ts';
import type { Passage } from './passage.ts';

export interface UpstreamOptions {
  readonly framing: Framing;
  readonly upgrade: boolean;
  /** whether a kept connection may be used; if not, a new one is made for this request alone */
  readonly reuse: boolean;
  /** gives up dialling */
  readonly signal: AbortSignal;
}

/**
 * The request to the server in the sandbox, its headers written, its body still to come.
 * @throws what Node thinks of a method or path that cannot be sent
 */
export function upstreamRequest(passage: Passage, { framing, upgrade, reuse, signal }: UpstreamOptions): ClientRequest {
  const { request: incoming, route, target, incarnation, config } = passage;
  const method = incoming.method ?? 'GET';
  const headers = forwardedHeaders(
    {
      method,
      rawHeaders: incoming.rawHeaders,
      framing,
      clientAddress: incoming.socket.remoteAddress,
      secure: 'encrypted' in incoming.socket && incoming.socket.encrypted === true,
      upgrade,
    },
    route,
    target,
  );
  const options: GuestRequestOptions = {
    method,
    path: route.path,
    headers,
    agent: reuse ? incarnation.shared : incarnation.single,
    maxHeaderSize: config.maxHeaderBytes,
    guest: { port: route.port, host: headers[1], signal },
  };
  const upstream = request(options);
  // Bounded by their size already; a limit by number would drop fields silently.
  upstream.maxHeadersCount = 0;
  return upstream;
}
