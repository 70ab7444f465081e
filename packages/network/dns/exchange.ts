import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { FrameReader, frame } from './frames.ts';
import { answers, type Edns, type Message, type Question, readMessage, writeQuery } from './message.ts';
import type { Upstream } from './resolv-conf.ts';

/** What is asked of an upstream; the id is chosen anew for every attempt. */
export interface UpstreamQuery {
  readonly question: Question;
  readonly recursionDesired: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  readonly edns: Edns | undefined;
}

export interface UpstreamAnswer {
  readonly bytes: Buffer;
  readonly message: Message;
}

const MAX_TCP_MESSAGE = 65_535;

/**
 * Asks over UDP with a random id from a socket of its own, so from a random port, that takes packets of this upstream
 * only. Packets that do not answer the question are ignored: they may be forged. Rejects when the upstream's host says
 * that nothing listens, and with the signal's reason.
 */
export function askUdp(upstream: Upstream, query: UpstreamQuery, signal: AbortSignal): Promise<UpstreamAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamAnswer>();
  if (signal.aborted) {
    reject(signal.reason);
    return promise;
  }
  const id = randomInt(0x10000);
  const socket = createSocket(isIPv6(upstream.address) ? 'udp6' : 'udp4');
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', reject);
  socket.on('message', (bytes) => {
    const message = readMessage(bytes);
    if (message !== undefined && answers(message, id, query.question)) resolve({ bytes, message });
  });
  socket.on('connect', () => {
    socket.send(writeQuery({ ...query, id }), (error) => {
      if (error !== null) reject(error);
    });
  });
  // Connected, so that the kernel drops what comes from elsewhere and reports that nothing listens there.
  socket.connect(upstream.port, upstream.address);
  return promise.finally(() => {
    signal.removeEventListener('abort', onAbort);
    socket.close();
  });
}

/** Asks over TCP. Rejects when the connection fails or brings anything but the answer, and with the signal's reason. */
export function askTcp(upstream: Upstream, query: UpstreamQuery, signal: AbortSignal): Promise<UpstreamAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamAnswer>();
  if (signal.aborted) {
    reject(signal.reason);
    return promise;
  }
  const id = randomInt(0x10000);
  const reader = new FrameReader(MAX_TCP_MESSAGE);
  const socket = connect(upstream.port, upstream.address);
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('the upstream closed the connection')));
  socket.on('connect', () => socket.write(frame(writeQuery({ ...query, id }))));
  socket.on('data', (chunk) => {
    for (const bytes of reader.push(chunk) ?? []) {
      const message = readMessage(bytes);
      if (message !== undefined && answers(message, id, query.question)) return resolve({ bytes, message });
      return reject(new Error('the upstream sent something that is no answer'));
    }
  });
  return promise.finally(() => {
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
  });
}
