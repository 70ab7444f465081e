import { type FileHandle, open } from 'node:fs/promises';
import type { MemorySink } from '../../contract/micro-vm.ts';
import { type Mapping, mappingsOf } from './mapping.ts';

const ZEROS = Buffer.alloc(1024 * 1024);

/** Writes pages into the memory of a guest that has not executed anything yet; they become private to it. */
export async function writeMemory(
  pid: number,
  base: string,
  size: number,
  give: (sink: MemorySink) => Promise<void>,
): Promise<void> {
  const mappings = await mappingsOf(pid, base, size);
  await using memory = await open(`/proc/${pid}/mem`, 'r+');
  await give({
    data: (offset, bytes) => writeAt(memory, mappings, offset, bytes),
    async zero(offset, length) {
      for (let at = 0; at < length; at += ZEROS.length) {
        await writeAt(memory, mappings, offset + at, ZEROS.subarray(0, Math.min(ZEROS.length, length - at)));
      }
    },
  });
}

async function writeAt(
  memory: FileHandle,
  mappings: readonly Mapping[],
  offset: number,
  bytes: Uint8Array,
): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const at = offset + done;
    const mapping = mappings.find(({ start, end, fileOffset }) => at >= fileOffset && at < fileOffset + (end - start));
    if (mapping === undefined) throw new RangeError(`there is no guest memory at ${at}`);
    const length = Math.min(bytes.length - done, mapping.fileOffset + (mapping.end - mapping.start) - at);
    const { bytesWritten } = await memory.write(bytes, done, length, mapping.start + (at - mapping.fileOffset));
    if (bytesWritten === 0) throw new Error(`guest memory cannot be written at ${at}`);
    done += bytesWritten;
  }
}
