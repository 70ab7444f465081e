import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/**
 * Ends a connection so that the other side cannot take it for a clean end: by a TCP reset. A body that is delimited by
 * the end of the connection would otherwise look complete. Under TLS the missing close_notify says the same.
 */
export function breakSocket(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  else socket.destroy();
}

/** Destroys a socket whose writable side has been ended, once its last bytes are handed to the kernel. */
export function destroyAfterFlush(socket: Duplex): void {
  if (socket.writableFinished) socket.destroy();
  else socket.once('finish', () => socket.destroy());
}
