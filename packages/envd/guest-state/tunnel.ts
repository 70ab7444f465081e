import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TUNNEL_HOST } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * Answers CONNECT 127.0.0.1:PORT: bytes both ways to a port of the guest's loopback, half-closed ends included.
 * `authorize` throws unless the request comes from the host.
 */
export function serveTunnel(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  authorize: (request: IncomingMessage) => unknown,
): void {
  client.on('error', () => client.destroy());
  try {
    authorize(request);
  } catch (error) {
    refuse(client, 401, 'Unauthorized', AenvError.from(error).message);
    return;
  }
  const port = portOf(request.url ?? '');
  if (port === undefined) {
    refuse(client, 400, 'Bad Request', `only ${TUNNEL_HOST}:PORT can be reached`);
    return;
  }
  const server = connect({ host: TUNNEL_HOST, port, allowHalfOpen: true, noDelay: true });
  const failed = (error: Error) => refuse(client, 502, 'Bad Gateway', `port ${port}: ${error.message}`);
  server.once('error', failed);
  server.once('connect', () => {
    server.off('error', failed);
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) server.write(head);
    join(client, server);
  });
  client.once('close', () => {
    if (!client.readableEnded) server.destroy();
  });
}

function join(client: Duplex, server: Socket): void {
  // An orderly end travels with the pipes, after the last byte; only a broken side breaks the other one.
  server.on('error', () => client.destroy());
  client.pipe(server);
  server.pipe(client);
}

function portOf(target: string): number | undefined {
  const match = /^(.+):(\d{1,5})$/.exec(target);
  const port = Number(match?.[2]);
  return match?.[1] === TUNNEL_HOST && port > 0 && port < 65536 ? port : undefined;
}

function refuse(client: Duplex, status: number, reason: string, message: string): void {
  if (client.destroyed || !client.writable) return;
  const body = JSON.stringify({ code: status, message });
  client.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
