import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/**
 * Ends a connection so that the other side cannot take it for a clean end: by a TCP reset. A body that is delimited by
 * the end of the connection would otherwise look complete. Under TLS the missing close_notify says the same. One that has
 * sent all and is sending its end is complete, and is only closed: the system refuses to reset it then (EINVAL), upon which
 * Node never closes it.
 */
export function breakSocket(socket: Duplex): void {
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !isEnding) socket.resetAndDestroy();
  else socket.destroy();
}

/** Destroys a socket whose writable side has been ended, once its last bytes are handed to the kernel. */
export function destroyAfterFlush(socket: Duplex): void {
  if (socket.writableFinished) socket.destroy();
  else socket.once('finish', () => socket.destroy());
}
