import { type ClientRequest, type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errorAnswer } from '../answers/answer.ts';
import { lingeringClose, writeRawAnswer } from '../answers/raw-answer.ts';
import { relayedHeaders } from '../headers/response-headers.ts';
import { sandboxLeft } from '../incarnations/incarnation.ts';
import type { Outcome } from '../proxy-metrics.ts';
import { breakSocket } from '../sockets/ends.ts';
import { type Passage, upstreamError } from './passage.ts';
import { relayResponse } from './relay-response.ts';
import { splice } from './splice.ts';
import { upstreamRequest } from './upstream-request.ts';

/** Bytes taken from a client before the server in the sandbox has agreed to the upgrade. */
const MAX_EARLY = 64 * 1024;

/**
 * Carries an upgraded connection (WebSocket or any other protocol). The server in the sandbox is asked first: its 101
 * opens the way for raw bytes in both directions, any other answer is relayed as it is.
 * @param head what came behind the request on the client's socket
 * @throws AenvError when it cannot begin (`too_many_connections`, `sandbox_gone`)
 */
export function forwardUpgrade(passage: Passage, socket: Duplex, head: Buffer): void {
  const { request, route, incarnation, config, bytes } = passage;
  const giveUp = new AbortController();
  let upstream: ClientRequest | undefined;
  let settled = false;
  /** whether the client has seen anything of an answer */
  let begun = false;

  const settle = (outcome: Outcome) => {
    if (settled) return;
    settled = true;
    lease.release();
    passage.done(outcome);
  };
  const fail = (error: AenvError) => {
    if (settled) return;
    settle(begun ? { kind: 'broken' } : { kind: 'refused', error });
    giveUp.abort(error);
    upstream?.destroy();
    if (begun) breakSocket(socket);
    else writeRawAnswer(socket, errorAnswer(error, request), config.drainMs);
  };
  const lease = incarnation.lease(() => fail(sandboxLeft(route.sandboxId)));

  const onGone = () => {
    settle({ kind: 'client_gone' });
    giveUp.abort();
    upstream?.destroy();
    socket.destroy();
  };
  // Reading is the only way to learn that the client has gone, so what comes early is kept.
  const early: Buffer[] = head.length > 0 ? [head] : [];
  let earlyBytes = head.length;
  const onEarly = (chunk: Buffer) => {
    early.push(chunk);
    earlyBytes += chunk.length;
    if (earlyBytes > MAX_EARLY) socket.pause();
  };
  const stopWaiting = () => {
    socket.off('data', onEarly);
    socket.off('end', onGone);
    socket.off('close', onGone);
  };
  socket.on('error', () => {});
  socket.on('data', onEarly);
  socket.once('end', onGone);
  socket.once('close', onGone);
  if (socket instanceof Socket) socket.setTimeout(0).setKeepAlive(true, 30_000);

  try {
    upstream = upstreamRequest(passage, { framing: 'none', upgrade: true, reuse: false, signal: giveUp.signal });
  } catch (error) {
    stopWaiting();
    fail(upstreamError(error, route));
    return;
  }
  upstream.on('error', (error) => {
    if (settled || begun) return;
    stopWaiting();
    fail(upstreamError(error, route));
  });
  upstream.once('response', (answer) => {
    stopWaiting();
    begun = true;
    relayRefusal(answer, passage, socket, (outcome, error) => {
      if (error === undefined) settle(outcome);
      else fail(upstreamError(error, route));
      upstream?.destroy();
    });
  });
  upstream.once('upgrade', (answer, guest, guestHead) => {
    stopWaiting();
    if (settled) {
      guest.destroy();
      return;
    }
    begun = true;
    guest.setTimeout(0);
    socket.write(switchingProtocols(answer), 'latin1');
    if (guestHead.length > 0) socket.write(guestHead);
    for (const chunk of early) guest.write(chunk);
    const isWebSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
    const halfOpenMs = isWebSocket ? config.webSocketHalfOpenMs : config.upgradeHalfOpenMs;
    splice(socket, guest, { halfOpenMs, stalledMs: config.stalledMs }, bytes, () => settle({ kind: 'upgraded' }));
  });
  upstream.end();
}

function switchingProtocols(answer: IncomingMessage): string {
  const headers = relayedHeaders(answer.rawHeaders, false, true);
  let head = `HTTP/1.1 101 ${answer.statusMessage ?? 'Switching Protocols'}\r\nConnection: Upgrade\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}\r\n`;
}

/** The server would not upgrade: its answer goes to the client as to any request, and the connection is closed. */
function relayRefusal(
  answer: IncomingMessage,
  { request, config, bytes }: Passage,
  socket: Duplex,
  done: (outcome: Outcome, error?: unknown) => void,
): void {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Node's server does these two for responses of its own.
  response.assignSocket(socket as Socket);
  socket.on('drain', () => response.emit('drain'));
  const onClose = () => done({ kind: 'client_gone' });
  socket.once('close', onClose);
  socket.resume();
  response.once('finish', () => {
    socket.off('close', onClose);
    response.detachSocket(socket as Socket);
    done({ kind: 'answered', status: response.statusCode });
    socket.end();
    lingeringClose(socket, config.drainMs);
  });
  relayResponse(answer, request, response, bytes, (error) => {
    socket.off('close', onClose);
    done({ kind: 'broken' }, error);
  });
}
