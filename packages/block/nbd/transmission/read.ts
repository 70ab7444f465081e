import type { Session } from '../negotiation/negotiation.ts';
import { CHUNK, CHUNK_HEADER_LENGTH, COMMAND_FLAG, SIMPLE_REPLY_LENGTH } from '../protocol/numbers.ts';
import {
  emptyChunk,
  errorChunk,
  holeChunk,
  writeChunkHeader,
  writeSimpleReply,
  writeUInt64,
} from '../protocol/replies.ts';
import type { Request } from '../protocol/request.ts';
import { splitAtHoles } from './extents.ts';
import type { ReplyStream } from './reply-stream.ts';
import { isAligned, readAnywhere, sectorsAround } from './unaligned.ts';

/** Reads that are shorter are not looked at for holes: telling of one would cost as much as sending zeros. */
const LOOK_FOR_HOLES = 64 * 1024;
const LEAST_HOLE = 32 * 1024;
const DATA_HEADER = CHUNK_HEADER_LENGTH + 8;

/** What became of a read: answered, or a promise of that. A failure is the caller's to answer. */
export type ReadOutcome = Promise<void> | undefined;

/** Answers a READ that is within the volume. @throws what the volume throws, also through the promise */
export function answerRead(session: Session, replies: ReplyStream, request: Request, cost: number): ReadOutcome {
  const { structured } = session;
  const { offset, length, flags } = request;
  if (structured && length === 0) {
    replies.append(emptyChunk(request), cost);
    return undefined;
  }
  if (structured && length >= LOOK_FOR_HOLES && (flags & COMMAND_FLAG.dontFragment) === 0) {
    const around = sectorsAround(offset, length);
    const ranges = session.export.volume.dataRanges(around.offset, around.length);
    const parts = splitAtHoles(ranges, offset, length, LEAST_HOLE);
    if (parts !== undefined) return answerParts(session, replies, request, parts, cost);
  }
  return answerPart(session, replies, request, request, true, cost);
}

interface Part {
  readonly offset: number;
  readonly length: number;
}

/** Sends one part of a read, the only one if `done`. */
function answerPart(
  { structured, export: { volume } }: Session,
  replies: ReplyStream,
  request: Request,
  { offset, length }: Part,
  done: boolean,
  cost: number,
): ReadOutcome {
  const header = structured ? DATA_HEADER : SIMPLE_REPLY_LENGTH;
  const room = replies.room(header + length);
  const target = room.bytes.subarray(header);
  let reading: Promise<void> | undefined;
  try {
    reading = isAligned(offset, length) ? volume.read(target, offset) : readAnywhere(volume, target, offset);
  } catch (error) {
    replies.takeBack(room);
    throw error;
  }
  // Only now: what a buffer held before must not go out with a good header when the read fails.
  const fillHeader = () => {
    if (!structured) return writeSimpleReply(room.bytes, 0, request, 0);
    writeChunkHeader(room.bytes, 0, request, CHUNK.offsetData, 8 + length, done);
    writeUInt64(room.bytes, CHUNK_HEADER_LENGTH, offset);
  };
  if (reading === undefined) {
    fillHeader();
    replies.commit(cost);
    return undefined;
  }
  replies.postpone(room);
  return reading.then(
    () => {
      fillHeader();
      replies.send(room, cost);
    },
    (error: unknown) => {
      replies.drop(room);
      throw error;
    },
  );
}

/** Sends parts in whatever order they become ready, and the end of the reply after all of them. */
function answerParts(
  session: Session,
  replies: ReplyStream,
  request: Request,
  parts: readonly (Part & { readonly hole: boolean })[],
  cost: number,
): ReadOutcome {
  const waits: Promise<void>[] = [];
  for (const part of parts) {
    if (part.hole) {
      replies.append(holeChunk(request, part.offset, part.length, false), 0);
      continue;
    }
    try {
      const wait = answerPart(session, replies, request, part, false, 0);
      if (wait !== undefined) waits.push(wait);
    } catch (error) {
      waits.push(Promise.reject(error));
    }
  }
  const end = () => replies.append(emptyChunk(request), cost);
  if (waits.length === 0) {
    end();
    return undefined;
  }
  // None may be sent after the end, so all are waited for, also when one has failed.
  return Promise.allSettled(waits).then(async () => {
    await Promise.all(waits);
    end();
    replies.flush();
  });
}

/** The reply to a read that failed. */
export function readError(session: Session, request: Request, errno: number): Buffer {
  if (session.structured) return errorChunk(request, errno);
  const reply = Buffer.allocUnsafe(SIMPLE_REPLY_LENGTH);
  writeSimpleReply(reply, 0, request, errno);
  return reply;
}
