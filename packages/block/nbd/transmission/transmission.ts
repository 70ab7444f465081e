import type { Logger } from '@aenv/platform/observability/logger.ts';
import { ALLOCATION_CONTEXT_ID, type Session } from '../negotiation/negotiation.ts';
import type { Input } from '../protocol/input.ts';
import { BLOCK_SIZE, COMMAND, COMMAND_FLAG, ERRNO, REQUEST_LENGTH } from '../protocol/numbers.ts';
import { blockStatusChunk, errorChunk, simpleReply } from '../protocol/replies.ts';
import { parseRequest, type Request } from '../protocol/request.ts';
import { errnoOf } from './errno.ts';
import { extentsOf } from './extents.ts';
import { answerRead, readError } from './read.ts';
import type { ReplyStream } from './reply-stream.ts';
import { discardWithin, isAligned, sectorsAround, writeAnywhere, zeroAnywhere } from './unaligned.ts';
import { WriteGroup } from './write-group.ts';

/** What a request costs besides its data, so that requests without any are bounded too. */
const REQUEST_COST = 64;
const MAX_EXTENTS = 8192;

/** Flags that each command knows; any other one is refused. */
const KNOWN_FLAGS: ReadonlyMap<number, number> = new Map([
  [COMMAND.read, COMMAND_FLAG.dontFragment],
  [COMMAND.write, COMMAND_FLAG.fua],
  [COMMAND.disconnect, 0],
  [COMMAND.flush, 0],
  [COMMAND.trim, COMMAND_FLAG.fua],
  [COMMAND.writeZeroes, COMMAND_FLAG.fua | COMMAND_FLAG.noHole | COMMAND_FLAG.fastZero],
  [COMMAND.blockStatus, COMMAND_FLAG.requestOne],
]);

/**
 * `more`: everything that was there is done or under way. `blocked`: the next request waits for memory. `finished`: the
 * client has said goodbye. `broken`: what came is no NBD, or larger than may be sent.
 */
export type Progress = 'more' | 'blocked' | 'finished' | 'broken';

interface Payload {
  readonly request: Request;
  readonly buffer: Buffer;
  filled: number;
}

/** The commands of one connection, without its socket: requests in, replies out, in any order. */
export class Transmission {
  readonly #session: Session;
  readonly #replies: ReplyStream;
  readonly #log: Logger;
  readonly #settled: () => void;
  readonly #writes: WriteGroup;
  /** a write whose data has not all come */
  #payload: Payload | undefined;
  /** data of refused writes that has yet to be thrown away */
  #skip = 0;
  #busy = 0;
  #failed = false;

  /** @param settled called whenever no request is under way any more after some had to wait */
  constructor(session: Session, replies: ReplyStream, log: Logger, settled: () => void) {
    this.#session = session;
    this.#replies = replies;
    this.#log = log;
    this.#settled = settled;
    this.#writes = new WriteGroup(session.export.volume);
  }

  /** Whether requests wait for data or for a disk. */
  get busy(): boolean {
    return this.#busy > 0;
  }

  /** Uses up the input as far as possible; replies that are ready have been handed to the socket when it returns. */
  advance(input: Input): Progress {
    const progress = this.#consume(input);
    this.#applyWrites();
    this.#replies.flush();
    return progress;
  }

  /** The connection is gone: gives back what a half-received write has taken. */
  close(): void {
    if (this.#payload !== undefined) this.#session.export.budget.give(REQUEST_COST + this.#payload.buffer.length);
    this.#payload = undefined;
  }

  #consume(input: Input): Progress {
    for (;;) {
      if (this.#skip > 0) {
        this.#skip -= input.skip(this.#skip);
        if (this.#skip > 0) return 'more';
      }
      if (this.#payload !== undefined) {
        const { request, buffer, filled } = this.#payload;
        this.#payload.filled += input.moveInto(buffer, filled);
        if (this.#payload.filled < buffer.length) return 'more';
        this.#payload = undefined;
        this.#write(request, buffer);
      }
      if (input.length < REQUEST_LENGTH) return 'more';
      const request = parseRequest(input.peek(REQUEST_LENGTH));
      if (request === undefined) return 'broken';
      const progress = this.#request(request, input);
      if (progress !== 'more') return progress;
    }
  }

  /** Takes one request out of the input, its data included as far as it is there. */
  #request(request: Request, input: Input): Progress {
    const { type, length } = request;
    if (type === COMMAND.disconnect) return 'finished';
    // A client that sends more than it was told could go on for 4 GiB.
    if (type === COMMAND.write && length > BLOCK_SIZE.maximum) return 'broken';
    const errno = this.#check(request);
    const hasData = errno === 0 && (type === COMMAND.write || type === COMMAND.read);
    const cost = REQUEST_COST + (hasData ? length : 0);
    if (!this.#session.export.budget.take(cost)) return 'blocked';
    input.skip(REQUEST_LENGTH);
    if (errno !== 0) {
      if (type === COMMAND.write) this.#skip = length;
      this.#fail(request, errno, cost);
    } else if (type !== COMMAND.write) {
      this.#execute(request, cost);
    } else if (input.length >= length) {
      this.#write(request, input.take(length));
    } else {
      this.#payload = { request, buffer: Buffer.allocUnsafeSlow(length), filled: 0 };
    }
    return 'more';
  }

  /** @returns the error number of a request that makes no sense, else 0 */
  #check({ type, flags, offset, length }: Request): number {
    const { volume } = this.#session.export;
    const known = KNOWN_FLAGS.get(type);
    if (known === undefined || (flags & ~known) !== 0) return ERRNO.invalid;
    if (type === COMMAND.flush) return 0;
    const writes = type === COMMAND.write || type === COMMAND.writeZeroes || type === COMMAND.trim;
    if (writes && volume.readOnly) return ERRNO.permission;
    if (offset + length > volume.size) {
      return type === COMMAND.write || type === COMMAND.writeZeroes ? ERRNO.noSpace : ERRNO.invalid;
    }
    if (type === COMMAND.read && length > BLOCK_SIZE.maximum) return ERRNO.invalid;
    if (type === COMMAND.blockStatus && (!this.#session.allocation || length === 0)) return ERRNO.invalid;
    return 0;
  }

  #write(request: Request, data: Buffer): void {
    const { counters, volume } = this.#session.export;
    counters.writes++;
    counters.writtenBytes += data.length;
    const cost = REQUEST_COST + data.length;
    if (data.length === 0) {
      this.#replies.append(simpleReply(request, 0), cost);
    } else if (isAligned(request.offset, data.length)) {
      this.#writes.add(request, data);
    } else {
      // In the order in which they came, since sectors may be shared with writes before.
      this.#applyWrites();
      // It may have to wait, and its bytes are only lent.
      const own = Buffer.from(data);
      this.#later(request, cost, async () => {
        await writeAnywhere(volume, own, request.offset);
        await this.#force(request);
      });
    }
  }

  #applyWrites(): void {
    if (this.#writes.empty) return;
    const requests = this.#writes.take();
    const { error } = requests;
    for (const { request, cost } of requests.writes) {
      const full = cost + REQUEST_COST;
      if (error !== undefined) this.#failWith(request, error, full);
      else if ((request.flags & COMMAND_FLAG.fua) === 0) this.#replies.append(simpleReply(request, 0), full);
      else this.#later(request, full, () => this.#force(request));
    }
  }

  #execute(request: Request, cost: number): void {
    const { counters, volume } = this.#session.export;
    const { offset, length } = request;
    switch (request.type) {
      case COMMAND.read:
        counters.reads++;
        counters.readBytes += length;
        this.#answer(request, cost, () => answerRead(this.#session, this.#replies, request, cost));
        break;
      case COMMAND.flush:
        counters.flushes++;
        this.#applyWrites();
        this.#later(request, cost, () => volume.flush());
        break;
      case COMMAND.trim:
        counters.zeroes++;
        this.#applyWrites();
        this.#later(request, cost, () => {
          discardWithin(volume, offset, length);
          return this.#force(request);
        });
        break;
      case COMMAND.writeZeroes:
        counters.zeroes++;
        this.#applyWrites();
        this.#later(request, cost, () => this.#zero(request));
        break;
      case COMMAND.blockStatus:
        this.#answer(request, cost, () => {
          this.#replies.append(this.#blockStatus(request), cost);
          return undefined;
        });
    }
  }

  #zero(request: Request): Promise<void> | undefined {
    const { offset, length } = request;
    const { volume } = this.#session.export;
    if (!isAligned(offset, length)) return zeroAnywhere(volume, offset, length).then(() => this.#force(request));
    if (length > 0) volume.zero(offset, length);
    return this.#force(request);
  }

  #blockStatus({ offset, length, flags, ...cookie }: Request): Buffer {
    const around = sectorsAround(offset, length);
    const most = (flags & COMMAND_FLAG.requestOne) === 0 ? MAX_EXTENTS : 1;
    const ranges = this.#session.export.volume.dataRanges(around.offset, around.length);
    return blockStatusChunk(cookie, ALLOCATION_CONTEXT_ID, extentsOf(ranges, offset, length, most));
  }

  /** For a request that answers by itself unless it fails. */
  #answer(request: Request, cost: number, work: () => Promise<void> | undefined): void {
    try {
      const wait = work();
      if (wait !== undefined) this.#track(request, cost, wait);
    } catch (error) {
      this.#failWith(request, error, cost);
    }
  }

  /** Waits for the disk where the request asks for it. */
  #force(request: Request): Promise<void> | undefined {
    const forced = (request.flags & COMMAND_FLAG.fua) !== 0;
    return forced ? this.#session.export.volume.flush('strict') : undefined;
  }

  /** Answers when `work` is done, at once if it is done at once. */
  #later(request: Request, cost: number, work: () => Promise<void> | undefined): void {
    const succeed = () => this.#replies.append(simpleReply(request, 0), cost);
    this.#answer(request, cost, () => {
      const wait = work();
      if (wait === undefined) succeed();
      return wait?.then(() => {
        succeed();
        this.#replies.flush();
      });
    });
  }

  /** Follows a request that is not done yet. */
  #track(request: Request, cost: number, wait: Promise<void>): void {
    this.#busy++;
    void wait
      .catch((error: unknown) => {
        this.#failWith(request, error, cost);
        this.#replies.flush();
      })
      .finally(() => {
        this.#busy--;
        if (this.#busy === 0) this.#settled();
      });
  }

  #failWith(request: Request, error: unknown, cost: number): void {
    const { name } = this.#session.export;
    // A guest may ask for the same bad block for ever.
    if (!this.#failed) this.#log.error('a request to a volume failed', { export: name, type: request.type, error });
    this.#failed = true;
    this.#fail(request, errnoOf(error), cost);
  }

  #fail(request: Request, errno: number, cost: number): void {
    this.#session.export.counters.errors++;
    const { structured } = this.#session;
    if (request.type === COMMAND.read) this.#replies.append(readError(this.#session, request, errno), cost);
    else if (request.type === COMMAND.blockStatus && structured) this.#replies.append(errorChunk(request, errno), cost);
    else this.#replies.append(simpleReply(request, errno), cost);
  }
}
