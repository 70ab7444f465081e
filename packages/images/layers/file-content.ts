import type { FileHandle } from 'node:fs/promises';

const ZEROS = Buffer.alloc(64 * 1024);

/**
 * Writes a stream into an empty file. Chunks of zeros become holes, so that a sparse file of a layer is small on disk.
 * @returns bytes of the file
 */
export async function writeSparse(file: FileHandle, content: AsyncIterable<Buffer>): Promise<number> {
  let position = 0;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + ZEROS.length);
      if (!part.equals(ZEROS.subarray(0, part.length))) await writeAll(file, part, position);
      at += part.length;
      position += part.length;
    }
  }
  // A hole at the end is no part of the file yet.
  await file.truncate(position);
  return position;
}

async function writeAll(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const { bytesWritten } = await file.write(data, done, data.length - done, position + done);
    done += bytesWritten;
  }
}
