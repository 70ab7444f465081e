import type { ClientRequest, IncomingMessage, InformationEvent, ServerResponse } from 'node:http';
import { relayedHeaders } from '../headers/response-headers.ts';

/** Interim answers passed on for one request; a server has no reason to send more. */
const MAX_INTERIM = 16;

/**
 * Passes interim answers (100, 102, 103, …) on. A 100 goes only to a client that asked for it. HTTP/1.0 knows none, and
 * an answer that waits behind another one on the same connection (pipelining) goes without.
 */
export function relayInformation(upstream: ClientRequest, request: IncomingMessage, response: ServerResponse): void {
  if (request.httpVersion !== '1.1') return;
  const asked = request.headers.expect?.toLowerCase() === '100-continue';
  let interim = 0;
  upstream.on('continue', () => {
    if (asked && !response.headersSent) response.writeContinue();
  });
  upstream.on('information', (information: InformationEvent) => {
    const { socket } = response;
    if (information.statusCode === 100 || response.headersSent || socket === null || ++interim > MAX_INTERIM) return;
    let head = `HTTP/1.1 ${information.statusCode} ${information.statusMessage}\r\n`;
    const headers = relayedHeaders(information.rawHeaders, false, false);
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    socket.write(`${head}\r\n`, 'latin1');
  });
}
