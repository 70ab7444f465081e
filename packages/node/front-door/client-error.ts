import type { Duplex } from 'node:stream';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errorAnswer } from '../proxy/answers/answer.ts';
import { writeRawAnswer } from '../proxy/answers/raw-answer.ts';

/** Answers what could not be read as a request, or cuts the connection when its client is gone. */
export function answerClientError(error: Error, socket: Duplex, drainMs: number): void {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  writeRawAnswer(socket, errorAnswer(explained(code), { headers: {} }), drainMs);
}

function explained(code: unknown): AenvError {
  if (code === 'HPE_HEADER_OVERFLOW') return new AenvError('headers_too_large', 'The header fields are too large.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AenvError('request_timeout', 'The request did not arrive in time.');
  }
  return new AenvError('invalid_request', 'The request is not valid HTTP/1.1.', {
    remediation: 'Send well-formed HTTP/1.1; TLS and HTTP/2 are served on the port of `tls.listen` only.',
  });
}

/** CONNECT, in any version of HTTP. */
export function connectRefused(): AenvError {
  return new AenvError('method_not_allowed', 'CONNECT is not served.', {
    remediation: 'Send plain requests; ports of sandboxes are reached by host label or routing headers.',
  });
}
