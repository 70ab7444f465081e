import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';
import type { TarEntry } from '../tar/entry.ts';

/**
 * Makes a device node or a fifo with mknod(1), since Node has no call for it. It is made under a plain name in
 * `scratch` and then moved, because a name from a layer may hold bytes that an argument vector of Node cannot carry.
 * @param scratch folder on the same file system
 */
export async function makeNode(entry: TarEntry, target: Buffer, scratch: string): Promise<void> {
  const made = join(scratch, 'node');
  const kind = { 'character-device': 'c', 'block-device': 'b' }[String(entry.type)] ?? 'p';
  const numbers = kind === 'p' ? [] : [String(entry.devMajor), String(entry.devMinor)];
  await run(['mknod', '--mode=0600', made, kind, ...numbers]);
  await rename(made, target);
}

/** What Linux can express (12 and 20 bits). */
export function hasDeviceNumbers(entry: TarEntry): boolean {
  const { devMajor, devMinor } = entry;
  return devMajor >= 0 && devMajor < 1 << 12 && devMinor >= 0 && devMinor < 1 << 20;
}
