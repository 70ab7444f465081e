import type { IncomingMessage } from 'node:http';

/**
 * Reads what is left of a request whose answer is complete, and forgets it. Without this, an answer that came before the
 * end of the body would block the connection: Node discards only bodies that nobody has begun to read, and a connection
 * whose bytes are not read serves no further request.
 */
export function discardRest(request: IncomingMessage): void {
  if (request.readableEnded || request.destroyed) return;
  request.unpipe();
  // A reader that was left in the middle still listens, and a stream with such a listener does not flow.
  request.removeAllListeners('readable');
  setImmediate(() => request.resume());
}
