import { writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { MemorySink } from '../../contract/micro-vm.ts';
import { type Mapping, mappingsOf } from './mapping.ts';
import { Turns } from './turns.ts';

const ZEROS = Buffer.alloc(1024 * 1024);

/**
 * Writes pages into the memory of a guest that has not executed anything yet; they become private to it. Synchronously,
 * as they are read: mostly they are some here and some there.
 */
export async function writeMemory(
  pid: number,
  base: string,
  size: number,
  give: (sink: MemorySink) => Promise<void>,
): Promise<void> {
  const mappings = await mappingsOf(pid, base, size);
  if (mappings.length === 0) throw new Error(`process ${pid} does not have ${base} mapped`);
  await using memory = await open(`/proc/${pid}/mem`, 'r+');
  const turns = new Turns();
  const write = (offset: number, bytes: Uint8Array): undefined | Promise<void> => {
    writeAt(memory.fd, mappings, offset, bytes);
    return turns.copied(bytes.length);
  };
  await give({
    data: write,
    async zero(offset, length) {
      for (let at = 0; at < length; at += ZEROS.length) {
        await write(offset + at, ZEROS.subarray(0, Math.min(ZEROS.length, length - at)));
      }
    },
  });
}

function writeAt(memory: number, mappings: readonly Mapping[], offset: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) {
    const at = offset + done;
    const mapping = mappings.find(({ start, end, fileOffset }) => at >= fileOffset && at < fileOffset + (end - start));
    if (mapping === undefined) throw new RangeError(`there is no guest memory at ${at}`);
    const length = Math.min(bytes.length - done, mapping.fileOffset + (mapping.end - mapping.start) - at);
    const written = writeSync(memory, bytes, done, length, mapping.start + (at - mapping.fileOffset));
    if (written === 0) throw new Error(`guest memory cannot be written at ${at}`);
    done += written;
  }
}
