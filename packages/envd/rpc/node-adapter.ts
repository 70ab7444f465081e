import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from '@connectrpc/connect/protocol';
import { sendJson } from '../server/answer.ts';
import { writeChunk } from '../server/write.ts';

// setTimeout(3) of JavaScript fires at once above this; a deadline beyond 24 days is none.
const TIMEOUT_MAX = 2 ** 31 - 1;

/**
 * Serves one Connect call over node:http. An adapter of our own instead of `@connectrpc/connect-node`, which loads
 * node:http2 and its client side; here every module costs start-up time of a virtual machine.
 */
export async function serveCall(
  handler: UniversalHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  // The request's own close comes as soon as its body is read; the response's tells when the client has left.
  response.once('close', () => gone.abort());
  const answer = await handler(toUniversal(request, gone.signal));
  if (answer.body === undefined) {
    const message = answer.status === 415 ? 'this content type is not served here' : 'not allowed';
    return sendJson(response, answer.status, { code: answer.status, message }, headersOf(answer));
  }
  // Written at once and unbuffered: clients wait for the first message with a time limit.
  response.writeHead(answer.status, headersOf(answer));
  for await (const chunk of answer.body) {
    if (!(await writeChunk(response, chunk))) break;
  }
  response.end();
}

function toUniversal(request: IncomingMessage, signal: AbortSignal): UniversalServerRequest {
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headersDistinct)) {
    for (const item of value ?? []) header.append(name, item);
  }
  if (Number(header.get('connect-timeout-ms')) > TIMEOUT_MAX) header.delete('connect-timeout-ms');
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? '',
    url: new URL(request.url ?? '/', 'http://envd').href,
    header,
    body: request.iterator({ destroyOnReturn: false }),
    signal,
  };
}

function headersOf(answer: UniversalServerResponse): Record<string, string> {
  return Object.fromEntries(answer.header ?? []);
}
