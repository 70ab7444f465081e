import type { Export } from '../export.ts';
import type { Input } from '../protocol/input.ts';
import { BASE_ALLOCATION, HANDSHAKE, OPTION, OPTION_MAGIC, REPLY } from '../protocol/numbers.ts';
import { writeUInt64 } from '../protocol/replies.ts';
import { parseInfoRequest, parseMetaContextRequest } from './option-data.ts';
import { infoReplies, listedExport, metaContextReply, optionError, optionReply } from './option-replies.ts';

/** The only metadata context that there is. */
export const ALLOCATION_CONTEXT_ID = 1;
/** Far more than any sensible option has: two strings of 4096 bytes and some numbers. */
const MAX_OPTION_DATA = 16 * 1024;
const OPTION_HEADER = 16;
/** A client that goes on and on is none that wants an export. */
const MAX_OPTIONS = 256;

/** What was agreed on. */
export interface Session {
  readonly export: Export;
  readonly structured: boolean;
  /** whether block status may be asked for */
  readonly allocation: boolean;
}

/** Where a negotiation stands after the bytes so far; `closed` also when the other side does not speak NBD. */
export type Outcome = { readonly kind: 'more' | 'closed' } | { readonly kind: 'agreed'; readonly session: Session };

const MORE = { kind: 'more' } as const;
const CLOSED = { kind: 'closed' } as const;

/**
 * The server's side of the fixed newstyle negotiation, without a socket: bytes in, replies out.
 *
 * greeting -> client flags -> option* -> (EXPORT_NAME | GO) agreed
 *                                     -> (ABORT | nonsense) closed
 */
export class Negotiation {
  readonly #find: (name: string) => Export | undefined;
  readonly #names: () => readonly string[];
  readonly #send: (reply: Buffer) => void;
  #greeted = false;
  #noZeroes = false;
  #structured = false;
  /** the export that block status was agreed on for */
  #allocationOf: Export | undefined;
  #options = 0;

  /**
   * @param find gives the export of a name; the empty one asks for a default
   * @param names of all exports
   */
  constructor(
    find: (name: string) => Export | undefined,
    names: () => readonly string[],
    send: (reply: Buffer) => void,
  ) {
    this.#find = find;
    this.#names = names;
    this.#send = send;
  }

  /** Takes what it can use from the input. */
  advance(input: Input): Outcome {
    if (!this.#greeted) {
      if (input.length < 4) return MORE;
      const flags = input.take(4).readUInt32BE(0);
      if ((flags & ~(HANDSHAKE.fixedNewstyle | HANDSHAKE.noZeroes)) !== 0) return CLOSED;
      this.#noZeroes = (flags & HANDSHAKE.noZeroes) !== 0;
      this.#greeted = true;
    }
    while (input.length >= OPTION_HEADER) {
      const header = input.peek(OPTION_HEADER);
      const [option, length] = [header.readUInt32BE(8), header.readUInt32BE(12)];
      if (header.readBigUInt64BE(0) !== OPTION_MAGIC || length > MAX_OPTION_DATA) return CLOSED;
      if (++this.#options > MAX_OPTIONS) return CLOSED;
      if (input.length < OPTION_HEADER + length) {
        this.#options--;
        return MORE;
      }
      input.skip(OPTION_HEADER);
      const outcome = this.#option(option, input.take(length));
      if (outcome.kind !== 'more') return outcome;
    }
    return MORE;
  }

  #option(option: number, data: Buffer): Outcome {
    switch (option) {
      case OPTION.exportName:
        return this.#exportName(data);
      case OPTION.abort:
        this.#send(optionReply(option, REPLY.ack));
        return CLOSED;
      case OPTION.list:
        if (data.length > 0) return this.#refuse(option, REPLY.invalid, 'LIST takes no data');
        for (const name of this.#names()) this.#send(listedExport(option, name));
        this.#send(optionReply(option, REPLY.ack));
        return MORE;
      case OPTION.info:
      case OPTION.go:
        return this.#info(option, data);
      case OPTION.structuredReply:
        if (data.length > 0) return this.#refuse(option, REPLY.invalid, 'STRUCTURED_REPLY takes no data');
        this.#structured = true;
        this.#send(optionReply(option, REPLY.ack));
        return MORE;
      case OPTION.listMetaContext:
      case OPTION.setMetaContext:
        return this.#metaContext(option, data);
      default:
        return this.#refuse(option, REPLY.unsupported, 'no such option here');
    }
  }

  /** The old way to choose: it cannot be refused but by going away. */
  #exportName(data: Buffer): Outcome {
    const found = this.#find(data.toString('utf8'));
    if (found === undefined) return CLOSED;
    const reply = Buffer.alloc(this.#noZeroes ? 10 : 134);
    writeUInt64(reply, 0, found.volume.size);
    reply.writeUInt16BE(found.flags(this.#structured), 8);
    this.#send(reply);
    return this.#agree(found);
  }

  #info(option: number, data: Buffer): Outcome {
    const request = parseInfoRequest(data);
    if (request === undefined) return this.#refuse(option, REPLY.invalid, 'malformed option');
    const found = this.#find(request.name);
    if (found === undefined) return this.#refuse(option, REPLY.unknownExport, 'no such export');
    this.#send(infoReplies(option, found, found.flags(this.#structured), request.types));
    return option === OPTION.go ? this.#agree(found) : MORE;
  }

  #metaContext(option: number, data: Buffer): Outcome {
    const set = option === OPTION.setMetaContext;
    // Whatever comes of it, an earlier choice is void.
    if (set) this.#allocationOf = undefined;
    if (!this.#structured) return this.#refuse(option, REPLY.invalid, 'structured replies come first');
    const request = parseMetaContextRequest(data);
    if (request === undefined) return this.#refuse(option, REPLY.invalid, 'malformed option');
    const found = this.#find(request.name);
    if (found === undefined) return this.#refuse(option, REPLY.unknownExport, 'no such export');
    const { queries } = request;
    const wanted = queries.includes(BASE_ALLOCATION) || (!set && (queries.length === 0 || queries.includes('base:')));
    if (wanted) this.#send(metaContextReply(option, set ? ALLOCATION_CONTEXT_ID : 0, BASE_ALLOCATION));
    if (set && wanted) this.#allocationOf = found;
    this.#send(optionReply(option, REPLY.ack));
    return MORE;
  }

  #agree(found: Export): Outcome {
    // Agreed on for another export, it does not count for this one.
    const allocation = this.#allocationOf === found;
    return { kind: 'agreed', session: { export: found, structured: this.#structured, allocation } };
  }

  #refuse(option: number, type: number, why: string): Outcome {
    this.#send(optionError(option, type, why));
    return MORE;
  }
}
