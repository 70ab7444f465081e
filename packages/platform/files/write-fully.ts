import type { FileHandle } from 'node:fs/promises';

/** What is written to: one call may take a part only, as where a disk is nearly full (write(2)). */
export interface PartialWriter {
  write(data: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesWritten: number }>;
}

/** Writes all of `data` at a place of a file. @throws what the file throws; then any of it may be there */
export async function writeFully(file: PartialWriter | FileHandle, data: Uint8Array, position: number): Promise<void> {
  const writer: PartialWriter = file;
  for (let done = 0; done < data.length; ) {
    done += (await writer.write(data, done, data.length - done, position + done)).bytesWritten;
  }
}
