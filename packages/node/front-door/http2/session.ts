import {
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { errorAnswer } from '../../proxy/answers/answer.ts';
import { connectRefused } from '../client-error.ts';
import type { FrontDoorConfig } from '../config.ts';
import { exchange } from './exchange.ts';
import { toHttp2 } from './headers.ts';
import { MemoryLink } from './memory-link.ts';

/** Streams that a client may have open on one connection; further ones wait at the client. */
const MAX_STREAMS = 256;
/** Bytes of a request body that a client may send ahead of the server that takes them. */
const STREAM_WINDOW = 256 * 1024;
const CONNECTION_WINDOW = 4 * 1024 * 1024;
/** Header fields of one message; their size has a limit of its own. */
const MAX_FIELDS = 1024;
/** MB that a connection may hold in buffers before its client's new streams are refused; all its windows together. */
const MAX_MEMORY_MB = 100;

/**
 * Serves HTTP/2 on a TLS connection. Behind it there is HTTP/1.1 only: each stream becomes a connection of its own to
 * that server, within this process, so that one set of rules holds for both versions. A connection without streams is
 * closed after the time that idle connections have.
 * @param accept takes the server's ends of these connections
 */
export function serveHttp2(
  socket: TLSSocket,
  config: Pick<FrontDoorConfig, 'keepAliveTimeoutMs' | 'maxClientHeaderBytes' | 'maxHeaderBytes' | 'drainMs'>,
  accept: (connection: Duplex) => void,
): ServerHttp2Session {
  const { remoteAddress } = socket;
  const session = performServerHandshake(socket, {
    maxHeaderListPairs: MAX_FIELDS,
    maxSessionMemory: MAX_MEMORY_MB,
    settings: {
      maxConcurrentStreams: MAX_STREAMS,
      initialWindowSize: STREAM_WINDOW,
      maxHeaderListSize: config.maxClientHeaderBytes,
      enablePush: false,
    },
  });
  session.setLocalWindowSize(CONNECTION_WINDOW);
  let open = 0;
  const idle = setTimeout(() => {
    if (open > 0) return;
    // A client that does not close its side in turn is cut the next time.
    if (session.closed) socket.destroy();
    else session.close();
    if (!socket.destroyed) idle.refresh();
  }, config.keepAliveTimeoutMs);
  // An error of a connection ends it; whoever has a stream on it learns it by the end of that.
  session.on('error', () => session.destroy());
  socket.on('error', () => session.destroy());
  socket.once('close', () => clearTimeout(idle));
  session.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]) => {
      open++;
      stream.once('close', () => {
        if (--open === 0 && !socket.destroyed) idle.refresh();
      });
      if (headers[':method'] === 'CONNECT') {
        refuse(stream, connectRefused());
        return;
      }
      exchange(stream, {
        ...{ rawHeaders, flags, maxHeaderBytes: config.maxHeaderBytes, drainMs: config.drainMs },
        connect: () => {
          const [client, server] = MemoryLink.pair({ remoteAddress });
          accept(server);
          return client;
        },
      });
    },
  );
  return session;
}

/** Answers what HTTP/1.1 has no ordinary request for. */
function refuse(stream: ServerHttp2Stream, error: AenvError): void {
  stream.on('error', () => {});
  const { status, headers, body } = errorAnswer(error, { headers: {} });
  stream.respond(toHttp2(status, headers, false));
  stream.end(body);
}
