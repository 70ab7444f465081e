import { connect, type Socket } from 'node:net';
import { Input } from '../protocol/input.ts';
import {
  BASE_ALLOCATION,
  CHUNK,
  CHUNK_DONE,
  OPTION,
  REPLY,
  SIMPLE_REPLY_MAGIC,
  STRUCTURED_REPLY_MAGIC,
} from '../protocol/numbers.ts';
import { infoData, metaContextData, optionBytes, type RequestFields, requestBytes, u32 } from './wire.ts';

/** One chunk of a structured reply, or the whole of a simple one (type `simple`). */
export interface ReplyPart {
  readonly type: number | 'simple';
  readonly errno: number;
  readonly data: Buffer;
}

export interface ClientOptions {
  readonly structured?: boolean;
  readonly name?: string;
}

interface Pending {
  readonly readLength: number;
  readonly parts: ReplyPart[];
  readonly resolve: (parts: ReplyPart[]) => void;
  readonly reject: (error: Error) => void;
}

/** A client that speaks the protocol to the letter and checks that the server does. */
export class NbdClient implements AsyncDisposable {
  readonly socket: Socket;
  /** of the export */
  size = 0;
  flags = 0;
  /** cookies in the order in which their requests were answered */
  readonly answered: bigint[] = [];
  /** rejects every pending request when it comes */
  readonly closed: Promise<void>;
  readonly #input = new Input();
  readonly #pending = new Map<bigint, Pending>();
  #wake: (() => void) | undefined;
  #transmitting = false;
  #cookie = 1n;
  #structured = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      this.#input.push(chunk);
      this.#wake?.();
      if (this.#transmitting) this.#replies();
    });
    socket.once('close', () => {
      this.#wake?.();
      for (const { reject } of this.#pending.values()) reject(new Error('the connection is gone'));
      this.#pending.clear();
      resolve();
    });
  }

  static async connect(path: string, options: ClientOptions = {}): Promise<NbdClient> {
    const client = await NbdClient.open(path);
    await client.go(options);
    return client;
  }

  /** Connects and exchanges greetings, no more. */
  static async open(path: string): Promise<NbdClient> {
    const socket = connect(path);
    const client = new NbdClient(socket);
    const greeting = await client.#bytes(18);
    if (greeting.toString('latin1', 0, 16) !== 'NBDMAGICIHAVEOPT') throw new Error('no NBD server');
    socket.write(u32(greeting.readUInt16BE(16)));
    return client;
  }

  async go({ structured = false, name = '' }: ClientOptions): Promise<void> {
    if (structured) {
      await this.option(OPTION.structuredReply);
      await this.option(OPTION.setMetaContext, metaContextData(name, [BASE_ALLOCATION]));
      this.#structured = true;
    }
    const replies = await this.option(OPTION.go, infoData(name));
    const info = replies.find(({ type, data }) => type === REPLY.info && data.readUInt16BE(0) === 0);
    if (info === undefined || replies.at(-1)?.type !== REPLY.ack) throw new Error('the export was refused');
    this.size = Number(info.data.readBigUInt64BE(2));
    this.flags = info.data.readUInt16BE(10);
    this.#transmitting = true;
  }

  /** Sends an option and gives all replies to it, up to the acknowledgement or the error. */
  async option(option: number, data?: Uint8Array): Promise<{ readonly type: number; readonly data: Buffer }[]> {
    this.socket.write(optionBytes(option, data));
    const replies: { type: number; data: Buffer }[] = [];
    for (;;) {
      const header = await this.#bytes(20);
      if (header.readUInt32BE(8) !== option) throw new Error('a reply to another option');
      const type = header.readUInt32BE(12);
      replies.push({ type, data: Buffer.from(await this.#bytes(header.readUInt32BE(16))) });
      if (type === REPLY.ack || type >= 2 ** 31) return replies;
    }
  }

  /** Sends a request and gives the parts of its reply. */
  request(fields: RequestFields, data?: Uint8Array): Promise<ReplyPart[]> {
    const cookie = fields.cookie ?? this.#cookie++;
    const { promise, resolve, reject } = Promise.withResolvers<ReplyPart[]>();
    promise.catch(() => {});
    const readLength = fields.type === 0 ? (fields.length ?? 0) : 0;
    this.#pending.set(cookie, { readLength, parts: [], resolve, reject });
    this.socket.write(requestBytes({ ...fields, cookie }, data));
    return promise;
  }

  /** The error number of a request, 0 for success. */
  async errno(fields: RequestFields, data?: Uint8Array): Promise<number> {
    return (await this.request(fields, data)).reduce((errno, part) => errno || part.errno, 0);
  }

  /** Reads, puts chunks together, and checks that they cover all without overlap. */
  async read(offset: number, length: number, flags = 0): Promise<Buffer> {
    const parts = await this.request({ type: 0, offset: BigInt(offset), length, flags });
    const [first] = parts;
    for (const { errno } of parts) if (errno !== 0) throw new Error(`errno ${errno}`);
    if (first?.type === 'simple') return first.data;
    const result = Buffer.alloc(length, 0xee);
    let covered = 0;
    for (const { type, data } of parts) {
      if (type === CHUNK.none) continue;
      const at = Number(data.readBigUInt64BE(0)) - offset;
      const count = type === CHUNK.offsetHole ? data.readUInt32BE(8) : data.length - 8;
      if (at < 0 || at + count > length) throw new Error('a chunk outside the request');
      if (type === CHUNK.offsetHole) result.fill(0, at, at + count);
      else data.copy(result, at, 8);
      covered += count;
    }
    if (covered !== length) throw new Error(`${covered} of ${length} bytes answered`);
    return result;
  }

  async write(offset: number, data: Uint8Array, flags = 0): Promise<void> {
    const errno = await this.errno({ type: 1, offset: BigInt(offset), flags }, data);
    if (errno !== 0) throw new Error(`errno ${errno}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }

  #replies(): void {
    for (;;) {
      if (this.#input.length < 16) return;
      const magic = this.#input.peek(4).readUInt32BE(0);
      if (magic === SIMPLE_REPLY_MAGIC) {
        const header = this.#input.peek(16);
        const [errno, cookie] = [header.readUInt32BE(4), header.readBigUInt64BE(8)];
        const pending = this.#find(cookie);
        const length = errno === 0 ? pending.readLength : 0;
        if (length > 0 && this.#structured)
          throw new Error('a simple reply with data after structured ones were agreed');
        if (this.#input.length < 16 + length) return;
        this.#input.skip(16);
        pending.parts.push({ type: 'simple', errno, data: Buffer.from(this.#input.take(length)) });
        this.#done(cookie, pending);
      } else if (magic === STRUCTURED_REPLY_MAGIC && this.#structured) {
        if (this.#input.length < 20) return;
        const header = this.#input.peek(20);
        const [flags, type] = [header.readUInt16BE(4), header.readUInt16BE(6)];
        const [cookie, length] = [header.readBigUInt64BE(8), header.readUInt32BE(16)];
        if (this.#input.length < 20 + length) return;
        this.#input.skip(20);
        const data = Buffer.from(this.#input.take(length));
        const pending = this.#find(cookie);
        pending.parts.push({ type, errno: type === CHUNK.error ? data.readUInt32BE(0) : 0, data });
        if ((flags & CHUNK_DONE) !== 0) this.#done(cookie, pending);
      } else throw new Error(`no reply: ${magic.toString(16)}`);
    }
  }

  #find(cookie: bigint): Pending {
    const pending = this.#pending.get(cookie);
    if (pending === undefined) throw new Error(`nobody asked for ${cookie}`);
    return pending;
  }

  #done(cookie: bigint, pending: Pending): void {
    this.#pending.delete(cookie);
    this.answered.push(cookie);
    pending.resolve(pending.parts);
  }

  async #bytes(count: number): Promise<Buffer> {
    while (this.#input.length < count) {
      if (this.socket.destroyed) throw new Error('the connection is gone');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#wake = undefined;
    return this.#input.take(count);
  }
}
