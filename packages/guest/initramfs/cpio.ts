import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A member of an archive; `path` without a leading slash, parents before their children. */
export type CpioEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | {
      readonly kind: 'character-device';
      readonly path: string;
      readonly mode: number;
      readonly major: number;
      readonly minor: number;
    };

const TYPE_BITS = { folder: 0o040000, file: 0o100000, 'character-device': 0o020000 } as const;

/**
 * An uncompressed archive in the `newc` format, as the kernel takes for its initramfs (its documentation: "initramfs
 * buffer format"). Owner root, time 0: the same entries give the same bytes.
 */
export function writeCpio(entries: readonly CpioEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  entries.forEach((entry, index) => {
    const data = entry.kind === 'file' ? entry.data : new Uint8Array();
    const device = entry.kind === 'character-device' ? [entry.major, entry.minor] : [0, 0];
    const links = entry.kind === 'folder' ? 2 : 1;
    addMember(parts, entry.path, index + 1, TYPE_BITS[entry.kind] | entry.mode, links, device, data);
  });
  addMember(parts, 'TRAILER!!!', 0, 0, 1, [0, 0], new Uint8Array());
  return Buffer.concat(parts);
}

function addMember(
  parts: Uint8Array[],
  path: string,
  inode: number,
  mode: number,
  links: number,
  device: readonly number[],
  data: Uint8Array,
): void {
  const name = Buffer.from(`${path}\0`);
  if (path === '' || path.startsWith('/') || path.includes('\0')) {
    throw new AenvError('asset_failed', `bad name in an archive: ${JSON.stringify(path)}`);
  }
  const fields = [inode, mode, 0, 0, links, 0, data.length, 0, 0, ...device, name.length, 0];
  const header = `070701${fields.map((value) => value.toString(16).padStart(8, '0').toUpperCase()).join('')}`;
  // Header and name together, and the data, are each filled up to a multiple of four bytes.
  parts.push(Buffer.from(header), name, padding(header.length + name.length), data, padding(data.length));
}

function padding(length: number): Uint8Array {
  return new Uint8Array((4 - (length % 4)) % 4);
}
