import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import type { FrontDoorConfig } from '../../front-door/config.ts';
import { createFrontDoor, type FrontDoor } from '../../front-door/front-door.ts';
import { FakeDirectory, freshAddress, httpGuest, type Listening, rawGuest } from './guests.ts';

/** A front door with a directory, for one test: everything taken through it is closed with it. */
export class House implements AsyncDisposable {
  readonly directory = new FakeDirectory();
  readonly door: FrontDoor;
  url = '';
  readonly #closers: (() => Promise<void> | void)[] = [];

  private constructor(config: Partial<FrontDoorConfig>, control: RequestListener) {
    this.door = createFrontDoor({
      directory: this.directory,
      control,
      config: { closeGraceMs: 50, ...config },
      log: silentLogger,
      metrics: silentMetrics,
    });
  }

  static async open(
    config: Partial<FrontDoorConfig> = {},
    control: RequestListener = (_request, response) => void response.end('control'),
  ): Promise<House> {
    const house = new House(config, control);
    house.url = (await house.door.listen({ host: '127.0.0.1', port: 0 })).url;
    return house;
  }

  /** Closes something at the end of the test, before the front door. */
  async keep<T extends { close(): Promise<void> | void }>(resource: T | Promise<T>): Promise<T> {
    const taken = await resource;
    this.#closers.push(() => taken.close());
    return taken;
  }

  /** A running sandbox with an HTTP server at a fresh address. */
  async serve(
    sandboxId: string,
    listener: RequestListener,
    more: Parameters<FakeDirectory['run']>[2] = {},
  ): Promise<Listening & { readonly address: string }> {
    const address = freshAddress();
    const guest = await this.keep(httpGuest(address, listener));
    this.directory.run(sandboxId, address, more);
    return { ...guest, address };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.reverse()) await close();
    await this.door.close();
  }
}

/** A sandbox whose server sees each request's head as text and answers with bytes. */
export async function rawSandbox(house: House, onHead: (socket: Socket, head: string) => void): Promise<number> {
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      let head = '';
      socket.on('data', (chunk) => {
        head += chunk.toString('latin1');
        if (!head.includes('\r\n\r\n')) return;
        const complete = head;
        head = '';
        onHead(socket, complete);
      });
    }),
  );
  house.directory.run('ia', address);
  return guest.port;
}
