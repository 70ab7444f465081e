import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { FrameReader, frame } from '../frames.ts';

/** What a made-up upstream does with a query: one answer, several, or none. */
export type UpstreamBehaviour = (query: Buffer, transport: 'udp' | 'tcp') => readonly Buffer[];

/** A name server for tests on UDP and TCP of one port, which remembers what it was asked and from which port. */
export class TestUpstream {
  readonly queries: { readonly bytes: Buffer; readonly transport: 'udp' | 'tcp'; readonly port: number }[] = [];
  readonly address: string;
  readonly port: number;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;

  constructor(udp: UdpSocket, tcp: Server, address: string, behaviour: UpstreamBehaviour) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.address = address;
    this.port = udp.address().port;
    udp.on('message', (bytes, client) => {
      this.queries.push({ bytes, transport: 'udp', port: client.port });
      for (const answer of behaviour(bytes, 'udp')) udp.send(answer, client.port, client.address);
    });
    tcp.on('connection', (socket) => {
      const reader = new FrameReader(65_535);
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const bytes of reader.push(chunk) ?? []) {
          this.queries.push({ bytes, transport: 'tcp', port: socket.remotePort ?? 0 });
          for (const answer of behaviour(bytes, 'tcp')) socket.write(frame(answer));
        }
      });
    });
  }

  static async start(behaviour: UpstreamBehaviour, address = '127.0.0.1', port = 0): Promise<TestUpstream> {
    const tcp = createServer();
    await new Promise<void>((resolve, reject) => {
      tcp.once('error', reject);
      tcp.listen(port, address, resolve);
    });
    const bound = tcp.address();
    const udp = createSocket('udp4');
    await new Promise<void>((resolve, reject) => {
      udp.once('error', reject);
      udp.bind(typeof bound === 'object' && bound !== null ? bound.port : 0, address, resolve);
    });
    return new TestUpstream(udp, tcp, address, behaviour);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#udp.close(resolve));
    await new Promise((resolve) => this.#tcp.close(resolve));
  }
}
