import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { ContractHarness, GuestConnection } from '../contract/harness.ts';
import type { VmDriver, VmSpec } from '../contract/micro-vm.ts';
import { createFakeDriver, FakeHost } from './driver.ts';

/** The contract suite's view of the fake driver, or of a driver that is made from it. */
export async function fakeHarness(
  wrap: (driver: VmDriver, host: FakeHost) => VmDriver = (driver) => driver,
): Promise<ContractHarness & { readonly host: FakeHost }> {
  const folder = await mkdtemp(join(tmpdir(), 'fake-vms-'));
  const host = new FakeHost();
  let count = 0;
  return {
    host,
    patience: { boot: 1_000, end: 1_000, silence: 150 },
    openDriver: async () => wrap(createFakeDriver({ host }), host),
    async makeSpec() {
      count++;
      return fakeSpec(folder, count);
    },
    dial: async (spec) => new FakeConnection(spec.network.hostAddress),
    async crash(vm) {
      await host.vms.get(vm.record.incarnation)?.die();
    },
    processExists: async (record) => host.vms.has(record.incarnation),
    async close() {
      await host.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** A spec with an address that test files which run at the same time do not share. */
export function fakeSpec(folder: string, index: number): VmSpec {
  const incarnation = `vm${index}`;
  return {
    incarnation,
    runDir: join(folder, 'run', incarnation),
    serialLog: join(folder, 'serial', `${incarnation}.log`),
    cpuCount: 1,
    memoryMb: 16,
    kernel: '/nonexistent',
    initramfs: '/nonexistent',
    kernelArgs: '',
    drives: [],
    network: {
      index,
      netns: '/nonexistent',
      tap: 'tap0',
      hostAddress: `127.${20 + (process.pid % 200)}.${index >> 8}.${1 + (index & 127)}`,
      uid: 60_000,
    },
  };
}

class FakeConnection implements GuestConnection {
  readonly #address: string;
  #socket: Socket | undefined;

  constructor(address: string) {
    this.#address = address;
  }

  async asks(ms: number): Promise<boolean> {
    this.#socket ??= connectTo(this.#address);
    return ask(this.#socket, ms);
  }

  async asksAnew(ms: number): Promise<boolean> {
    this.#socket?.destroy();
    this.#socket = connectTo(this.#address);
    return ask(this.#socket, ms);
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
  }
}

function connectTo(address: string): Socket {
  const socket = createConnection(ENVD_PORT, address);
  socket.on('error', () => {});
  return socket;
}

async function ask(socket: Socket, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), ms);
  const onData = (data: Buffer) => resolve(data.toString().startsWith('HTTP/1.1 204'));
  socket.on('data', onData);
  socket.once('close', () => resolve(false));
  if (socket.destroyed) resolve(false);
  else socket.write('GET /health HTTP/1.1\r\nhost: guest\r\n\r\n');
  const answer = await promise;
  clearTimeout(timer);
  socket.off('data', onData);
  return answer;
}
