import { connect as connectNet, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Quiet connections are probed after this many `ms`, so that a dead peer frees its socket. */
const KEEP_ALIVE_DELAY = 30_000;

export interface ConnectLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Opens a TCP connection to an address.
 * @throws AenvError `upstream_timeout`; the system's error (`ECONNREFUSED`, …); the signal's reason
 */
export function connectTcp(address: string, port: number, limits: ConnectLimits): Promise<Socket> {
  const socket = connectNet({
    host: address,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_DELAY,
  });
  return settled(socket, 'connect', limits);
}

/**
 * Speaks TLS over an open connection. The certificate is not verified: it is made inside the sandbox for names that
 * mean nothing outside, and the connection leads to that sandbox in any case.
 */
export function startTls(socket: Socket, serverName: string | undefined, limits: ConnectLimits): Promise<Socket> {
  const secure = connectTls({
    socket,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
  return settled(secure, 'secureConnect', limits);
}

/** Waits for `event` on a socket; in every other outcome the socket is destroyed. */
export function settled<T extends Socket>(socket: T, event: string, limits: ConnectLimits): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const fail = (error: unknown) => {
    leave();
    socket.on('error', () => {});
    socket.destroy();
    reject(error);
  };
  const timer = setTimeout(() => fail(timedOut(limits.timeoutMs)), limits.timeoutMs);
  const onEvent = () => {
    leave();
    resolve(socket);
  };
  const onClose = () => fail(Object.assign(new Error('connection closed while it was opened'), { code: 'ECONNRESET' }));
  const onAbort = () => fail(limits.signal.reason);
  const leave = () => {
    clearTimeout(timer);
    socket.off(event, onEvent);
    socket.off('error', fail);
    socket.off('close', onClose);
    limits.signal.removeEventListener('abort', onAbort);
  };
  socket.once(event, onEvent);
  socket.once('error', fail);
  socket.once('close', onClose);
  limits.signal.addEventListener('abort', onAbort, { once: true });
  if (limits.signal.aborted) onAbort();
  return promise;
}

export function timedOut(ms: number): AenvError {
  return new AenvError('upstream_timeout', `The sandbox accepted no connection within ${ms} ms.`);
}
