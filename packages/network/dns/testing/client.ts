import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { FrameReader, frame } from '../frames.ts';

const LIMIT_MS = 8_000;

/** Sends one message over UDP and gives the first answer; rejects after a limit. */
export function askOverUdp(address: string, port: number, message: Uint8Array, from?: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const socket = createSocket('udp4');
  const timer = setTimeout(() => reject(new Error('no answer')), LIMIT_MS);
  socket.on('error', reject);
  socket.on('message', resolve);
  socket.bind(0, from ?? '0.0.0.0', () => socket.send(message, port, address));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

/** Sends messages over one TCP connection and gives as many answers; rejects when the connection ends before. */
export function askOverTcp(
  address: string,
  port: number,
  messages: readonly Uint8Array[],
  from?: string,
): Promise<Buffer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
  const socket = connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
  const reader = new FrameReader(65_535);
  const answers: Buffer[] = [];
  socket.setTimeout(LIMIT_MS, () => reject(new Error('no answer')));
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('closed without an answer')));
  socket.on('connect', () => socket.write(Buffer.concat(messages.map((message) => frame(message)))));
  socket.on('data', (chunk) => {
    answers.push(...(reader.push(chunk) ?? []));
    if (answers.length >= messages.length) resolve(answers);
  });
  return promise.finally(() => socket.destroy());
}
