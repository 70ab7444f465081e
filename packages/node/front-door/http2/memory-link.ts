import { Duplex } from 'node:stream';

/** What the HTTP/1.1 server asks of a connection beside its bytes. */
export interface LinkOrigin {
  /** address of the client's socket */
  readonly remoteAddress: string | undefined;
}

/**
 * One end of a connection within this process. Bytes and their end pass with back-pressure; an end that is destroyed
 * before it has sent all of its bytes breaks the other one with ECONNRESET, as a TCP reset does.
 */
export class MemoryLink extends Duplex {
  readonly remoteAddress: string | undefined;
  /** the client's connection is TLS */
  readonly encrypted = true;
  bytesRead = 0;
  #peer: MemoryLink | undefined;
  /** told when this end wants more bytes */
  #wanted: (() => void) | undefined;

  private constructor({ remoteAddress }: LinkOrigin) {
    super({ highWaterMark: 64 * 1024 });
    this.remoteAddress = remoteAddress;
  }

  /** @returns both ends: the client's and the server's */
  static pair(origin: LinkOrigin): readonly [client: MemoryLink, server: MemoryLink] {
    const client = new MemoryLink(origin);
    const server = new MemoryLink(origin);
    client.#peer = server;
    server.#peer = client;
    // Whoever uses an end learns of an error by its close; when nobody does any more, it is nobody's fault.
    for (const end of [client, server]) end.on('error', () => {});
    return [client, server];
  }

  /** Sends what was written, then closes; the name that sockets have for it. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    const wanted = this.#wanted;
    this.#wanted = undefined;
    wanted?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], done);
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  override _final(done: (error?: Error | null) => void): void {
    process.nextTick(() => {
      const peer = this.#peer;
      if (peer !== undefined && !peer.destroyed) peer.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const peer = this.#peer;
    this.#peer = undefined;
    this.#wanted?.();
    if (peer !== undefined && !peer.destroyed) process.nextTick(() => peer.#peerIsGone(this.writableFinished));
    done(error);
  }

  #peerIsGone(sentAll: boolean): void {
    this.#peer = undefined;
    if (!sentAll) this.destroy(connectionReset());
  }

  /** Later, not within the write: whoever writes need not reckon with an answer before it returns. */
  #send(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    process.nextTick(() => {
      const peer = this.#peer;
      if (peer === undefined || peer.destroyed) {
        done(connectionReset());
        return;
      }
      let more = true;
      for (const chunk of chunks) {
        peer.bytesRead += chunk.length;
        more = peer.push(chunk);
      }
      if (more) done();
      else peer.#wanted = () => done();
    });
  }
}

function connectionReset(): Error {
  return Object.assign(new Error('the other end of the connection is gone'), { code: 'ECONNRESET' });
}
