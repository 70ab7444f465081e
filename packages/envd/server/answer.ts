import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Answers with JSON. The length is announced, so that the connection can serve the next request. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(response.req.method === 'HEAD' ? undefined : bytes);
}

/**
 * Answers with `{code, message}`, where `code` is the HTTP status: E2B clients read it so and compare some of these
 * bodies exactly, so there are no further members. When the answer has begun, the connection is cut instead: a short
 * body must not look complete.
 */
export function sendError(response: ServerResponse, error: unknown, headers: OutgoingHttpHeaders = {}): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, message } = AenvError.from(error);
  sendJson(response, status, { code: status, message }, headers);
}

/** Answers 204. */
export function sendEmpty(response: ServerResponse, headers: OutgoingHttpHeaders = {}): void {
  response.writeHead(204, headers);
  response.end();
}
