import type { IncomingMessage, ServerResponse } from 'node:http';
import { filterHeaders, hopByHop, toPairs } from '../headers/raw-headers.ts';
import { relayedHeaders } from '../headers/response-headers.ts';
import type { PassingBytes } from '../sockets/passing-bytes.ts';
import { sendHead } from '../sockets/send-head.ts';

/**
 * Passes the answer of a server in a sandbox on to the client: status, headers as they are, body with back-pressure,
 * trailers. `fail` is called once when the answer cannot be passed on or ends short of its length; what of it was
 * sent must then be made to look broken to the client.
 */
export function relayResponse(
  answer: IncomingMessage,
  request: IncomingMessage,
  response: ServerResponse,
  bytes: PassingBytes,
  fail: (error: unknown) => void,
): void {
  const status = answer.statusCode ?? 0;
  const bodyless = request.method === 'HEAD' || status === 204 || status === 304;
  const length = answer.headers['content-length'];
  const chunked = !bodyless && length === undefined && request.httpVersion === '1.1';
  const expected = bodyless || length === undefined ? undefined : Number(length);
  let settled = false;
  const failOnce = (error: unknown) => {
    if (settled) return;
    settled = true;
    fail(error);
  };

  const coding = answer.headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    failOnce(new Error(`transfer coding '${coding}' is not one that can be undone`));
    return;
  }
  const headers = relayedHeaders(answer.rawHeaders, chunked, status === 426);
  if (status === 426) headers.push('Connection', 'Upgrade, close');
  // Headers and the first bytes of the body leave in one packet if they came in one.
  response.cork();
  setImmediate(() => response.uncork());
  response.sendDate = false;
  try {
    response.writeHead(status, answer.statusMessage, headers);
  } catch (error) {
    failOnce(error);
    return;
  }
  sendHead(response);

  let received = 0;
  answer.on('data', (chunk: Buffer) => {
    if (settled) return;
    received += chunk.length;
    bytes.add(chunk.length);
    if (!response.write(chunk)) answer.pause();
  });
  response.on('drain', () => answer.resume());
  answer.once('end', () => {
    if (settled) return;
    if (!answer.complete || (expected !== undefined && received !== expected)) {
      failOnce(new Error(`body ended after ${received} bytes`));
      return;
    }
    settled = true;
    if (chunked) addTrailers(answer, response);
    response.end();
  });
  answer.once('error', failOnce);
  answer.once('close', () => failOnce(new Error('connection closed within the body')));
}

function addTrailers(answer: IncomingMessage, response: ServerResponse): void {
  if (answer.rawTrailers.length === 0) return;
  const ending = hopByHop(answer.rawHeaders);
  response.addTrailers(toPairs(filterHeaders(answer.rawTrailers, (name) => !ending.has(name))));
}
