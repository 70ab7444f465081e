import { createSocket } from 'node:dgram';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AnswerMessage } from './tcp-listener.ts';

export interface UdpListener {
  close(): Promise<void>;
}

/** Receives questions over UDP. Rejects when the address cannot be bound. */
export async function listenUdp(
  address: string,
  port: number,
  answer: AnswerMessage,
  log: Logger,
): Promise<UdpListener> {
  const socket = createSocket('udp4');
  let open = true;
  socket.on('message', (bytes, client) => {
    void answer(bytes, client.address, 'udp').then((reply) => {
      // A guest that is gone needs no answer; the send error says nothing else.
      if (reply !== undefined && open) socket.send(reply, client.port, client.address, () => {});
    });
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  socket.bind({ address, port, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.off('error', reject);
  socket.on('error', (error) =>
    log.warn('the UDP socket of the DNS forwarder reports an error', { reason: error.message }),
  );
  return {
    close: () =>
      new Promise((done) => {
        open = false;
        socket.close(done);
      }),
  };
}
