import { chmodSync, chownSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';

const REQUEST_MAGIC = 0x25609513;
const OPTION_MAGIC = Buffer.from('IHAVEOPT');
const [OPT_GO, REP_ACK, REP_INFO, INFO_EXPORT] = [7, 1, 3, 0];
const [READ, WRITE, DISCONNECT] = [0, 1, 2];
/** has flags, takes flush */
const TRANSMISSION_FLAGS = 0b101;

/**
 * A drive in memory behind the NBD protocol (fixed newstyle, simple replies), with as much of it as QEMU needs. It can
 * go away and come back under a running VM.
 */
export class MemoryNbd {
  readonly data: Buffer;
  readonly #path: string;
  readonly #uid: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(path: string, size: number, uid: number) {
    this.#path = path;
    this.#uid = uid;
    this.data = Buffer.alloc(size);
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#sockets.delete(socket));
      void this.#serve(socket).catch(() => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(this.#path, resolve));
    chownSync(this.#path, this.#uid, this.#uid);
    chmodSync(this.#path, 0o600);
    this.#server = server;
  }

  /** Breaks all connections and takes no new ones. */
  async close(): Promise<void> {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
    await rm(this.#path, { force: true });
  }

  async #serve(socket: Socket): Promise<void> {
    const input = reader(socket);
    socket.write(Buffer.concat([Buffer.from('NBDMAGIC'), OPTION_MAGIC, u16(0b11)]));
    await input(4);
    for (let chosen = false; !chosen; ) {
      const header = await input(16);
      const option = header.readUInt32BE(8);
      await input(header.readUInt32BE(12));
      chosen = option === OPT_GO;
      if (!chosen) {
        socket.write(reply(option, 0x80000001, Buffer.alloc(0)));
        continue;
      }
      const size = Buffer.alloc(8);
      size.writeBigUInt64BE(BigInt(this.data.length));
      socket.write(reply(option, REP_INFO, Buffer.concat([u16(INFO_EXPORT), size, u16(TRANSMISSION_FLAGS)])));
      socket.write(reply(option, REP_ACK, Buffer.alloc(0)));
    }
    for (;;) {
      const request = await input(28);
      if (request.readUInt32BE(0) !== REQUEST_MAGIC) throw new Error('no request');
      const type = request.readUInt16BE(6);
      const [offset, length] = [Number(request.readBigUInt64BE(16)), request.readUInt32BE(24)];
      if (type === DISCONNECT) return;
      if (type === WRITE) (await input(length)).copy(this.data, offset);
      socket.write(Buffer.concat([Buffer.from('6744669800000000', 'hex'), request.subarray(8, 16)]));
      if (type === READ) socket.write(Buffer.from(this.data.subarray(offset, offset + length)));
    }
  }
}

function u16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16BE(value);
  return buffer;
}

function reply(option: number, type: number, data: Buffer): Buffer {
  const header = Buffer.alloc(20);
  header.writeBigUInt64BE(0x3e889045565a9n, 0);
  header.writeUInt32BE(option, 8);
  header.writeUInt32BE(type, 12);
  header.writeUInt32BE(data.length, 16);
  return Buffer.concat([header, data]);
}

/** Exactly so many bytes at a time. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  const chunks = socket[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  return async (length) => {
    while (rest.length < length) {
      const next = await chunks.next();
      if (next.done === true) throw new Error('the client went away');
      rest = Buffer.concat([rest, next.value]);
    }
    const taken = rest.subarray(0, length);
    rest = rest.subarray(length);
    return taken;
  };
}
