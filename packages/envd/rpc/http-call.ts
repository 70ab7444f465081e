import type { IncomingMessage, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Call } from './call.ts';

// A timer of JavaScript fires at once above this; a deadline beyond 24 days is none.
const TIMEOUT_MAX = 2 ** 31 - 1;

// Made once: an abort without a reason makes a DOMException with a stack each time.
const LEFT = new Error('the client has left');

/**
 * The call behind an HTTP request.
 * @throws AenvError `invalid_request` for a malformed deadline, `not_implemented` for a compressed message
 */
export function httpCall(request: IncomingMessage, response: ServerResponse): Call {
  for (const name of ['content-encoding', 'connect-content-encoding']) {
    const encoding = request.headers[name];
    if (encoding !== undefined && encoding !== 'identity') {
      throw new AenvError('not_implemented', `unknown compression '${String(encoding)}': only identity is served`);
    }
  }
  const timeout = parseTimeout(request.headers['connect-timeout-ms']);
  const deadline = timeout === undefined ? undefined : performance.now() + timeout;
  let controller: AbortController | undefined;
  return {
    header(name) {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    timeoutMs: () => (deadline === undefined ? undefined : deadline - performance.now()),
    get signal() {
      controller ??= abortOnClose(response);
      return controller.signal;
    },
  };
}

function abortOnClose(response: ServerResponse): AbortController {
  const controller = new AbortController();
  // The request's own close comes as soon as its body is read; the response's tells when the client has left.
  if (response.closed || response.destroyed) controller.abort(LEFT);
  else response.once('close', () => controller.abort(LEFT));
  return controller;
}

function parseTimeout(value: string | string[] | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !/^\d{1,10}$/.test(value)) {
    throw new AenvError('invalid_request', 'connect-timeout-ms must be a number of at most ten digits');
  }
  const ms = Number(value);
  return ms > TIMEOUT_MAX ? undefined : ms;
}
