import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { SECTOR_SIZE } from '../../layers/contract.ts';
import type { Volume } from '../../volume/contract.ts';

/** Clients are told the block size; those that ignore it get what they ask for, more slowly. */

const ATTEMPTS = 8;

const down = (offset: number) => offset - (offset % SECTOR_SIZE);
const up = (offset: number) => down(offset + SECTOR_SIZE - 1);

export function isAligned(offset: number, length: number): boolean {
  return offset % SECTOR_SIZE === 0 && length % SECTOR_SIZE === 0;
}

/** Reads at any offset; `target` may have any length. */
export async function readAnywhere(volume: Volume, target: Uint8Array, offset: number): Promise<void> {
  const start = down(offset);
  const whole = new Uint8Array(up(offset + target.length) - start);
  await volume.read(whole, start);
  target.set(whole.subarray(offset - start, offset - start + target.length));
}

/**
 * Writes at any offset. The rest of the first and of the last sector is read and written at one go: where a read has to
 * wait it is made again afterwards, so that a write of someone else that came meanwhile is not undone.
 */
export async function writeAnywhere(volume: Volume, data: Uint8Array, offset: number): Promise<void> {
  const start = down(offset);
  const end = up(offset + data.length);
  const whole = new Uint8Array(end - start);
  const first = whole.subarray(0, SECTOR_SIZE);
  const last = whole.subarray(whole.length - SECTOR_SIZE);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const waits = [volume.read(first, start), volume.read(last, end - SECTOR_SIZE)];
    if (waits.every((wait) => wait === undefined)) {
      whole.set(data, offset - start);
      volume.write(whole, start);
      return;
    }
    await Promise.all(waits);
  }
  throw new AenvError('internal', `the sectors around ${offset} of volume ${volume.id} cannot be held still`);
}

/** Zeroes any range. */
export async function zeroAnywhere(volume: Volume, offset: number, length: number): Promise<void> {
  const end = offset + length;
  const [innerStart, innerEnd] = [up(offset), down(end)];
  if (innerStart >= innerEnd) {
    await writeAnywhere(volume, new Uint8Array(length), offset);
    return;
  }
  if (offset < innerStart) await writeAnywhere(volume, new Uint8Array(innerStart - offset), offset);
  volume.zero(innerStart, innerEnd - innerStart);
  if (innerEnd < end) await writeAnywhere(volume, new Uint8Array(end - innerEnd), innerEnd);
}

/** Discards the whole sectors within any range; a discard is only a hint. */
export function discardWithin(volume: Volume, offset: number, length: number): void {
  const [start, end] = [up(offset), down(offset + length)];
  if (start < end) volume.discard(start, end - start);
}

/** The sectors that a range touches. */
export function sectorsAround(offset: number, length: number): { readonly offset: number; readonly length: number } {
  const start = down(offset);
  return { offset: start, length: up(offset + length) - start };
}
