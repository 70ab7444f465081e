import type { IncomingMessage, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { answerError } from '../proxy/answers/answer.ts';
import type { FrontDoorConfig } from './config.ts';

/**
 * Ends a request whose body trickles in to hold its connection: after `controlBodyTimeoutMs` it must have come at a
 * minimum rate, or it is answered with 408 and cut.
 */
export function guardBody(
  request: IncomingMessage,
  response: ServerResponse,
  config: Pick<FrontDoorConfig, 'controlBodyTimeoutMs' | 'controlBodyBytesPerSecond'>,
): void {
  const { socket } = request;
  const { controlBodyTimeoutMs: limit, controlBodyBytesPerSecond: rate } = config;
  const startBytes = socket.bytesRead;
  let elapsedMs = 0;
  const timer = setInterval(() => {
    elapsedMs += limit;
    if (request.complete || socket.bytesRead - startBytes >= (elapsedMs / 1000) * rate) return;
    stop();
    if (response.headersSent) {
      socket.destroy();
      return;
    }
    response.once('finish', () => socket.destroySoon());
    answerError(request, response, new AenvError('request_timeout', 'The body did not arrive in time.'), 100);
  }, limit);
  const stop = () => {
    clearInterval(timer);
    socket.off('close', stop);
  };
  request.once('end', stop);
  socket.once('close', stop);
}
