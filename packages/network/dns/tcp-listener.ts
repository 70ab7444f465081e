import { createServer, type Socket } from 'node:net';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { FrameReader, frame } from './frames.ts';
import type { Transport } from './resolver.ts';

/** Answers one message of a client; undefined when it deserves no answer. Never rejects. */
export type AnswerMessage = (bytes: Uint8Array, client: string, transport: Transport) => Promise<Buffer | undefined>;

export interface TcpListener {
  readonly port: number;
  close(): Promise<void>;
}

const LIMITS = {
  connections: 512,
  connectionsPerClient: 8,
  /** bytes; a question has no reason to be larger */
  question: 4_096,
  /** bytes of answers that a client has not read */
  unread: 256 * 1024,
  /** `ms` without a question or an answer */
  idle: 10_000,
};

/** Receives questions over TCP, several on one connection. Rejects when the address cannot be bound. */
export async function listenTcp(
  address: string,
  port: number,
  answer: AnswerMessage,
  log: Logger,
): Promise<TcpListener> {
  const perClient = new Map<string, number>();
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const client = socket.remoteAddress;
    const mine = (client === undefined ? undefined : perClient.get(client)) ?? 0;
    if (client === undefined || mine >= LIMITS.connectionsPerClient) {
      socket.on('error', () => {});
      socket.destroy();
      return;
    }
    perClient.set(client, mine + 1);
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      const left = (perClient.get(client) ?? 1) - 1;
      if (left > 0) perClient.set(client, left);
      else perClient.delete(client);
    });
    serve(socket, client, answer);
  });
  server.maxConnections = LIMITS.connections;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host: address, port }, resolve);
  await promise;
  server.off('error', reject);
  server.on('error', (error) =>
    log.warn('the TCP socket of the DNS forwarder reports an error', { reason: error.message }),
  );
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function serve(socket: Socket, client: string, answer: AnswerMessage): void {
  const reader = new FrameReader(LIMITS.question);
  let outstanding = 0;
  let ended = false;
  socket.setTimeout(LIMITS.idle, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('end', () => {
    ended = true;
    if (outstanding === 0) socket.end();
  });
  socket.on('data', (chunk) => {
    const messages = reader.push(chunk);
    if (messages === undefined) return socket.destroy();
    for (const message of messages) {
      outstanding += 1;
      void answer(message, client, 'tcp').then((reply) => {
        outstanding -= 1;
        if (socket.destroyed) return;
        // A message that deserves no answer means a client that does not speak the protocol.
        if (reply === undefined || socket.writableLength > LIMITS.unread) return socket.destroy();
        socket.write(frame(reply));
        if (ended && outstanding === 0) socket.end();
      });
    }
  });
}
