import type { Export } from '../export.ts';
import { BLOCK_SIZE, INFO, OPTION_REPLY_MAGIC, REPLY } from '../protocol/numbers.ts';
import { writeUInt64 } from '../protocol/replies.ts';

/** A reply to an option, with its data. */
export function optionReply(option: number, type: number, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const reply = Buffer.allocUnsafe(20 + data.length);
  reply.writeBigUInt64BE(OPTION_REPLY_MAGIC, 0);
  reply.writeUInt32BE(option, 8);
  reply.writeUInt32BE(type, 12);
  reply.writeUInt32BE(data.length, 16);
  reply.set(data, 20);
  return reply;
}

/** An error reply with words for whoever reads the client's output. */
export function optionError(option: number, type: number, message: string): Buffer {
  return optionReply(option, type, Buffer.from(message));
}

/** What INFO and GO are answered with. */
export function infoReplies(option: number, { name, volume }: Export, flags: number, types: readonly number[]): Buffer {
  const size = Buffer.alloc(12);
  size.writeUInt16BE(INFO.export, 0);
  writeUInt64(size, 2, volume.size);
  size.writeUInt16BE(flags, 10);
  const replies = [optionReply(option, REPLY.info, size)];
  if (types.includes(INFO.name)) {
    const text = Buffer.from(name);
    const info = Buffer.alloc(2 + text.length);
    info.writeUInt16BE(INFO.name, 0);
    info.set(text, 2);
    replies.push(optionReply(option, REPLY.info, info));
  }
  // Also told to whoever did not ask, which the protocol allows.
  const sizes = Buffer.alloc(14);
  sizes.writeUInt16BE(INFO.blockSize, 0);
  sizes.writeUInt32BE(BLOCK_SIZE.minimum, 2);
  sizes.writeUInt32BE(BLOCK_SIZE.preferred, 6);
  sizes.writeUInt32BE(BLOCK_SIZE.maximum, 10);
  replies.push(optionReply(option, REPLY.info, sizes), optionReply(option, REPLY.ack));
  return Buffer.concat(replies);
}

export function metaContextReply(option: number, contextId: number, name: string): Buffer {
  const text = Buffer.from(name);
  const data = Buffer.alloc(4 + text.length);
  data.writeUInt32BE(contextId, 0);
  data.set(text, 4);
  return optionReply(option, REPLY.metaContext, data);
}

/** One export in the answer to LIST. */
export function listedExport(option: number, name: string): Buffer {
  const text = Buffer.from(name);
  const data = Buffer.alloc(4 + text.length);
  data.writeUInt32BE(text.length, 0);
  data.set(text, 4);
  return optionReply(option, REPLY.server, data);
}
