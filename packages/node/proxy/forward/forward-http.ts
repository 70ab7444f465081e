import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { answerError, drain } from '../answers/answer.ts';
import { requestFraming } from '../headers/framing.ts';
import { toPairs } from '../headers/raw-headers.ts';
import { forwardedTrailers } from '../headers/request-headers.ts';
import { codeOf } from '../incarnations/dial.ts';
import { sandboxLeft } from '../incarnations/incarnation.ts';
import type { Outcome } from '../proxy-metrics.ts';
import { breakSocket } from '../sockets/ends.ts';
import { sendHead } from '../sockets/send-head.ts';
import { watchStall } from '../sockets/stall.ts';
import { type Passage, stalled, upstreamError } from './passage.ts';
import { relayInformation } from './relay-information.ts';
import { relayResponse } from './relay-response.ts';
import { upstreamRequest } from './upstream-request.ts';

/** How it shows that a connection was closed by the other side. */
const BROKEN = new Set(['ECONNRESET', 'EPIPE']);
const SAFE_TO_REPEAT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/**
 * Sends a request to the sandbox and its answer back. Either side's end ends the other: a client that goes away takes
 * the upstream connection with it, an upstream that breaks breaks the client's.
 * @throws AenvError when it cannot begin (`too_many_connections`, `sandbox_gone`, `invalid_request`)
 */
export function forwardHttp(passage: Passage, response: ServerResponse): void {
  const { request, route, incarnation, config, bytes } = passage;
  const framing = requestFraming(request.headers);
  if (framing === 'unsupported') {
    throw new AenvError(
      'invalid_request',
      `The transfer coding '${request.headers['transfer-encoding']}' is not served.`,
    );
  }
  const client = request.socket;
  const repeatable = framing === 'none' && SAFE_TO_REPEAT.has(request.method ?? '');
  const giveUp = new AbortController();
  let upstream: ClientRequest | undefined;
  let settled = false;

  const settle = (outcome: Outcome) => {
    if (settled) return;
    settled = true;
    client.off('close', onClientGone);
    lease.release();
    passage.done(outcome);
  };
  /** The one way out when something fails: an answer while that is possible, a broken connection after that. */
  const fail = (error: AenvError) => {
    if (settled) return;
    settle(response.headersSent ? { kind: 'broken' } : { kind: 'refused', error });
    request.unpipe();
    giveUp.abort(error);
    upstream?.destroy();
    if (response.headersSent) breakSocket(client);
    else answerError(request, response, error, config.drainMs);
  };
  const onClientGone = () => {
    settle({ kind: 'client_gone' });
    giveUp.abort();
    upstream?.destroy();
  };
  const lease = incarnation.lease(() => fail(sandboxLeft(route.sandboxId)));
  client.once('close', onClientGone);
  response.once('finish', () => {
    settle({ kind: 'answered', status: response.statusCode });
    if (request.complete) return;
    // Answered before all of the request was read: the upstream connection cannot serve another one.
    request.unpipe();
    upstream?.destroy();
    drain(request, config.drainMs);
  });

  const attempt = (reuse: boolean) => {
    const current = upstreamRequest(passage, { framing, upgrade: false, reuse, signal: giveUp.signal });
    upstream = current;
    let answered: IncomingMessage | undefined;
    relayInformation(current, request, response);
    current.on('response', (answer) => {
      answered = answer;
      relayResponse(answer, request, response, bytes, (error) => fail(upstreamError(error, route)));
    });
    current.on('error', (error) => {
      if (settled) return;
      if (answered !== undefined) {
        // How the answer ends decides: a server may well answer without reading the whole request. Only an answer that
        // is delimited by the end of the connection would look complete after this.
        if (isUntilClose(answered) && !answered.complete) fail(upstreamError(error, route));
        return;
      }
      // A kept connection may have been closed by the server just as it was taken.
      if (current.reusedSocket && repeatable && BROKEN.has(codeOf(error) ?? '')) attempt(false);
      else fail(upstreamError(error, route));
    });
    // An upgrade that nobody asked for ends the connection without an error.
    current.once('close', () => {
      if (upstream === current && answered === undefined) fail(upstreamError(undefined, route));
    });
    if (framing === 'none') {
      current.end();
      return;
    }
    sendHead(current);
    request.on('data', (chunk: Buffer) => bytes.add(chunk.length));
    request.pipe(current, { end: false });
    watchStall(request, config.stalledMs, () => fail(stalled(route)));
    request.once('end', () => {
      if (framing === 'chunked' && request.rawTrailers.length > 0) {
        current.addTrailers(toPairs(forwardedTrailers(request.rawTrailers)));
      }
      current.end();
    });
  };
  try {
    // A request that cannot be repeated never risks a connection that the server may be closing; envd announces when.
    attempt(repeatable || route.port === ENVD_PORT);
  } catch (error) {
    fail(upstreamError(error, route));
  }
}

function isUntilClose(answer: IncomingMessage): boolean {
  return answer.headers['content-length'] === undefined && answer.headers['transfer-encoding'] === undefined;
}
