import { readFile } from 'node:fs/promises';
import type { MemorySink, VmImage } from '@aenv/vmm/contract/micro-vm.ts';

/** The memory of a guest as one buffer. */
export class FlatMemory implements MemorySink {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  data(offset: number, bytes: Uint8Array): void {
    this.bytes.set(bytes, offset);
  }

  zero(offset: number, length: number): void {
    this.bytes.fill(0, offset, offset + length);
  }
}

/** What a VMM makes of an image. */
export async function readMemoryOf(image: VmImage): Promise<Buffer> {
  const memory = new FlatMemory(await readFile(image.memoryBase));
  await image.delta?.(memory);
  return memory.bytes;
}
