import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errorPage } from './error-page.ts';

/** An answer of the platform itself, ready to be written. */
export interface Answer {
  readonly status: number;
  /** flat list of names and values */
  readonly headers: string[];
  readonly body: Buffer;
}

/**
 * An error as JSON, or as a small page when a person looks at it with a browser. Any web page may read it: it is about
 * the sandbox, not from it, and browser clients need it to tell what happened.
 */
export function errorAnswer(error: AenvError, request: Pick<IncomingMessage, 'headers'>): Answer {
  const html = isNavigation(request);
  const body = Buffer.from(html ? errorPage(error) : JSON.stringify(error.toBody()));
  const headers = [
    'Content-Type',
    html ? 'text/html; charset=utf-8' : 'application/json',
    'Content-Length',
    String(body.length),
    'Cache-Control',
    'no-store',
    'Access-Control-Allow-Origin',
    '*',
    'X-Content-Type-Options',
    'nosniff',
  ];
  if (html) headers.push('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'");
  if (error.status === 429) headers.push('Retry-After', '1');
  return { status: error.status, headers, body };
}

/**
 * Answers a request with an error; the rest of the request's body is read and dropped for `drainMs`, because a socket
 * closed with unread bytes is reset by the kernel, and the client would lose the answer.
 */
export function answerError(
  request: IncomingMessage,
  response: ServerResponse,
  error: AenvError,
  drainMs: number,
): void {
  const answer = errorAnswer(error, request);
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
  drain(request, drainMs);
}

/** Reads what is left of a request's body and drops it; a client that goes on sending for longer is cut off. */
export function drain(request: IncomingMessage, drainMs: number): void {
  if (request.complete) {
    request.resume();
    return;
  }
  const { socket } = request;
  const timer = setTimeout(() => socket.destroy(), drainMs);
  const clear = () => clearTimeout(timer);
  request.once('end', clear);
  request.once('close', clear);
  socket.once('close', clear);
  request.resume();
}

/** A browser that opens a page (Fetch Metadata), as against a script, which wants JSON. */
function isNavigation(request: Pick<IncomingMessage, 'headers'>): boolean {
  return (
    request.headers['sec-fetch-mode'] === 'navigate' &&
    (request.headers.accept ?? '').toLowerCase().includes('text/html')
  );
}
