import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where the kernel shows block devices, and where their nodes are. */
export interface DevicePlaces {
  readonly sysBlock: string;
  readonly dev: string;
}

export const GUEST_DEVICES: DevicePlaces = { sysBlock: '/sys/block', dev: '/dev' };

/** Of the superblock, which begins at byte 1024 (kernel documentation, "Super Block"). */
const SUPERBLOCK = { at: 1024, size: 256, magicAt: 56, labelAt: 120, labelSize: 16 } as const;
const MAGIC = 0xef53;

/**
 * The node of the drive whose ext4 file system has a label, or, where none has, that the machine calls so: somebody may
 * have given its file system another label. Never by the order of drives.
 */
export async function findDrive(label: string, places: DevicePlaces = GUEST_DEVICES): Promise<string | undefined> {
  const names = (await readdir(places.sysBlock)).sort();
  for (const name of names) {
    if ((await labelOf(join(places.dev, name))) === label) return join(places.dev, name);
  }
  for (const name of names) {
    const serial = await readFile(join(places.sysBlock, name, 'serial'), 'utf8').catch(() => '');
    if (serial.trim() === label) return join(places.dev, name);
  }
  return undefined;
}

async function labelOf(device: string): Promise<string | undefined> {
  try {
    await using file = await open(device, 'r');
    const block = Buffer.alloc(SUPERBLOCK.size);
    const { bytesRead } = await file.read(block, 0, block.length, SUPERBLOCK.at);
    if (bytesRead < block.length || block.readUInt16LE(SUPERBLOCK.magicAt) !== MAGIC) return undefined;
    const text = block.toString('latin1', SUPERBLOCK.labelAt, SUPERBLOCK.labelAt + SUPERBLOCK.labelSize);
    return text.replace(/\0.*$/s, '');
  } catch {
    // A drive without a medium, or one that cannot be read, is none of these.
    return undefined;
  }
}
