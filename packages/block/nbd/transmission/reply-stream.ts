import type { Writable } from 'node:stream';
import type { BufferPool } from './buffer-pool.ts';

/** Small replies share a slab of this size; a reply that is larger has one of its own. */
const SLAB = 256 * 1024;

interface Slab {
  readonly buffer: Buffer;
  /** replies in it that are not yet with the kernel, and whether it is still being filled */
  uses: number;
}

/** Room for one reply, to be filled and then sent. */
export interface Room {
  readonly bytes: Buffer;
  readonly slab: Slab;
}

/**
 * Replies of one connection. Those that are ready when `flush` is called go out in one write, so that many small ones
 * cost one system call; one that has to wait for its data does not hold up the others.
 */
export class ReplyStream {
  readonly #socket: Writable;
  readonly #pool: BufferPool;
  readonly #sent: (cost: number) => void;
  #slab: Slab | undefined;
  /** end of what is given out of the slab */
  #end = 0;
  /** start of what is filled and not yet written */
  #start = 0;
  #cost = 0;

  /** @param sent told what was given as `cost` of replies, when the kernel has them or never will */
  constructor(socket: Writable, pool: BufferPool, sent: (cost: number) => void) {
    this.#socket = socket;
    this.#pool = pool;
    this.#sent = sent;
  }

  /** Room for a reply. Its bytes must be sent with `commit`, or taken out of the order with `postpone`, before the next. */
  room(length: number): Room {
    let slab = this.#slab;
    if (slab === undefined || this.#end + length > slab.buffer.length) {
      this.#leaveSlab();
      slab = { buffer: this.#pool.take(Math.max(SLAB, length)), uses: 1 };
      this.#slab = slab;
      this.#start = 0;
      this.#end = 0;
    }
    const bytes = slab.buffer.subarray(this.#end, this.#end + length);
    this.#end += length;
    return { bytes, slab };
  }

  /** The room that was given out last is filled; it goes out with the next `flush`. */
  commit(cost: number): void {
    this.#cost += cost;
  }

  /** The room that was given out last is filled later, and then sent with `send`. */
  postpone({ bytes, slab }: Room): void {
    slab.uses++;
    this.#end -= bytes.length;
    this.flush();
    this.#end += bytes.length;
    this.#start = this.#end;
  }

  /** The room that was given out last is not needed after all. */
  takeBack({ bytes }: Room): void {
    this.#end -= bytes.length;
  }

  /** Sends a room that was postponed. */
  send({ bytes, slab }: Room, cost: number): void {
    this.#write(bytes, slab, cost);
  }

  /** Gives up a room that was postponed. */
  drop({ slab }: Room): void {
    this.#release(slab);
  }

  /** Sends a small reply that was made elsewhere, in order with the others. */
  append(reply: Buffer, cost: number): void {
    reply.copy(this.room(reply.length).bytes);
    this.commit(cost);
  }

  /** Writes what is ready. */
  flush(): void {
    const slab = this.#slab;
    if (slab === undefined || this.#end === this.#start) return;
    slab.uses++;
    const cost = this.#cost;
    this.#cost = 0;
    const bytes = slab.buffer.subarray(this.#start, this.#end);
    this.#start = this.#end;
    this.#write(bytes, slab, cost);
  }

  /** No reply will be ready any more. */
  close(): void {
    this.#leaveSlab();
  }

  #write(bytes: Buffer, slab: Slab, cost: number): void {
    this.#socket.write(bytes, () => {
      this.#release(slab);
      this.#sent(cost);
    });
  }

  #leaveSlab(): void {
    this.flush();
    const slab = this.#slab;
    // First it must count as left: otherwise the release would take it for an idle one and leave it a second time.
    this.#slab = undefined;
    if (slab !== undefined) this.#release(slab);
  }

  #release(slab: Slab): void {
    slab.uses--;
    // An idle connection keeps no memory.
    if (slab === this.#slab && slab.uses === 1 && this.#start === this.#end) this.#leaveSlab();
    else if (slab.uses === 0) this.#pool.give(slab.buffer);
  }
}
