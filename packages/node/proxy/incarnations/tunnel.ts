import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { HOST_SECRET_HEADER, TUNNEL_HOST } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { type ConnectLimits, connectTcp, timedOut } from './connect-tcp.ts';

/**
 * Opens a connection to a port of the guest's loopback through envd.
 * @returns undefined when envd says that nothing listens there, or has no tunnel to offer
 * @throws as `connectTcp`, about the connection to envd
 */
export async function openTunnel(
  address: string,
  port: number,
  hostSecret: string,
  limits: ConnectLimits,
): Promise<Socket | undefined> {
  const socket = await connectTcp(address, ENVD_PORT, limits);
  const authority = `${TUNNEL_HOST}:${port}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const connect = request({
    method: 'CONNECT',
    path: authority,
    headers: ['Host', authority, HOST_SECRET_HEADER, hostSecret],
    // Without an agent of any kind, so that this socket is the one that is used.
    createConnection: () => socket,
  });
  const fail = (error: unknown) => {
    leave();
    socket.on('error', () => {});
    socket.destroy();
    reject(error);
  };
  const timer = setTimeout(() => fail(timedOut(limits.timeoutMs)), limits.timeoutMs);
  const onAbort = () => fail(limits.signal.reason);
  const leave = () => {
    clearTimeout(timer);
    limits.signal.removeEventListener('abort', onAbort);
  };
  limits.signal.addEventListener('abort', onAbort, { once: true });
  connect.on('error', fail);
  connect.once('connect', (response: IncomingMessage, _socket: Socket, head: Buffer) => {
    leave();
    if (response.statusCode !== 200) {
      socket.on('error', () => {});
      socket.destroy();
      resolve(undefined);
      return;
    }
    // A server that speaks first may have done so already.
    if (head.length > 0) socket.unshift(head);
    resolve(socket);
  });
  connect.end();
  return await promise;
}
