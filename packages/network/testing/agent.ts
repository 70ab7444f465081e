import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { answerTo } from '../dns/testing/answers.ts';
import { TestUpstream } from '../dns/testing/upstream.ts';
import { type AgentRequest, type FlowKind, type FlowState, type Outcome, PATIENCE_MS } from './agent-protocol.ts';

/** The process that plays a guest, or a machine outside: does what its stdin asks, and ends with it. */

const TICK_MS = 50;

class Agent {
  readonly #flows = new Map<string, { received: number; state: string }>();
  #seen = 0;

  async handle(request: AgentRequest): Promise<unknown> {
    switch (request.do) {
      case 'dial':
        return await outcome((done) => dial(request.host, request.port, request.hex, done));
      case 'datagram':
        return await outcome((done) => datagram(request.host, request.port, Buffer.from(request.hex, 'hex'), done));
      case 'open':
        return await this.#open(request.name, request.host, request.port, request.kind);
      case 'flow':
        return this.#flows.get(request.name) satisfies FlowState | undefined;
      case 'serve':
        return await this.#serve(request.port);
      case 'seen':
        return this.#seen;
      case 'serve-names':
        await TestUpstream.start((query) => [answerTo(query, '192.0.2.55')], request.address, 53);
        return {};
    }
  }

  async #open(name: string, host: string, port: number, kind: FlowKind): Promise<FlowState> {
    const flow = { received: 0, state: 'connecting' };
    this.#flows.set(name, flow);
    if (kind === 'udp') {
      const socket = createSocket('udp4');
      socket.on('message', () => {
        flow.received += 1;
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        flow.state = error.code ?? 'error';
      });
      flow.state = 'open';
      socket.send('ticks', port, host);
      return flow;
    }
    const socket = connect(port, host);
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.on('connect', () => {
      flow.state = 'open';
      socket.write('ticks\n');
      resolve();
    });
    const timer = setInterval(() => kind === 'talk' && socket.write('.'), TICK_MS);
    socket.on('data', (chunk) => {
      flow.received += chunk.length;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      flow.state = error.code ?? 'error';
    });
    socket.on('close', () => {
      clearInterval(timer);
      if (flow.state === 'open') flow.state = 'ended';
      resolve();
    });
    await promise;
    return flow;
  }

  async #serve(port: number): Promise<unknown> {
    const tcp = createServer((socket) => serveOne(socket));
    await new Promise<void>((resolve, reject) => {
      tcp.once('error', reject);
      tcp.listen(port, resolve);
    });
    const udp = createSocket('udp4');
    udp.on('message', (bytes, client) => {
      this.#seen += 1;
      if (bytes.toString() !== 'ticks') return udp.send(client.address, client.port, client.address);
      setInterval(() => udp.send('.', client.port, client.address), TICK_MS);
    });
    await new Promise<void>((resolve) => udp.bind(port, resolve));
    return {};
  }
}

type Done = (result: string, data?: string) => void;

/** Runs `work`, which returns how to end it, until it is done or patience is over. */
async function outcome(work: (done: Done) => () => void): Promise<Outcome> {
  const started = performance.now();
  const { promise, resolve } = Promise.withResolvers<{ result: string; data: string }>();
  const end = work((result, data = '') => resolve({ result, data }));
  const timer = setTimeout(() => resolve({ result: 'timeout', data: '' }), PATIENCE_MS);
  const { result, data } = await promise;
  clearTimeout(timer);
  end();
  return { result, data, ms: performance.now() - started };
}

function dial(host: string, port: number, hex: string | undefined, done: Done): () => void {
  const socket = connect(port, host);
  let line = '';
  socket.on('connect', () => socket.write(hex === undefined ? 'hello\n' : Buffer.from(hex, 'hex')));
  socket.on('data', (chunk) => {
    line += chunk;
    if (hex !== undefined) done('answered', chunk.toString('hex'));
    else if (line.includes('\n')) done('answered', line.trim());
  });
  socket.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'error'));
  return () => socket.destroy();
}

function datagram(host: string, port: number, payload: Buffer, done: Done): () => void {
  const socket = createSocket('udp4');
  socket.on('message', (bytes) => done('answered', bytes.toString('hex')));
  socket.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'error'));
  socket.on('connect', () => socket.send(payload));
  socket.connect(port, host);
  return () => socket.close();
}

function serveOne(socket: Socket): void {
  let timer: NodeJS.Timeout | undefined;
  socket.on('error', () => {});
  socket.on('close', () => clearInterval(timer));
  socket.once('data', (chunk) => {
    if (chunk.toString().startsWith('ticks')) timer = setInterval(() => socket.write('.'), TICK_MS);
    else socket.write(`${socket.remoteAddress?.replace('::ffff:', '')}\n`);
  });
}

const agent = new Agent();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, request }: { id: number; request: AgentRequest } = JSON.parse(line);
  agent.handle(request).then(
    (answer) => process.stdout.write(`${JSON.stringify({ id, answer })}\n`),
    (error: unknown) => process.stdout.write(`${JSON.stringify({ id, error: String(error) })}\n`),
  );
}
process.exit(0);
