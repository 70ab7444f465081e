import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ROOT_LABEL } from '@aenv/contracts/guest/layout.ts';
import { run } from '@aenv/platform/process/run.ts';

/** Part of the cache key: raise it when the same folder would give another file system. */
export const MKFS_VERSION = 1;

/**
 * Makes an ext4 file system with the content of a folder (mke2fs(8) -d), as a sparse file of `sizeBytes`.
 *
 * The options: no blocks reserved for root, since the disk is one user's; a journal of 16 MiB instead of 64, which is
 * enough for one disk of this size; and, because a new sparse file reads as zeros, nothing is zeroed and the inode
 * tables count as done. Otherwise every guest would zero 160 MiB of them after its first mount, into its own overlay.
 * @param identity what the UUID and the hash seed are derived from
 * @throws AenvError `image_invalid` when the content does not fit, `no_space`, `host_command_failed`
 */
export async function makeExt4(
  folder: string,
  file: string,
  sizeBytes: number,
  identity: string,
  signal?: AbortSignal,
): Promise<void> {
  const uuid = uuidOf(identity);
  const extended = [
    'lazy_itable_init=0',
    'lazy_journal_init=0',
    'assume_storage_prezeroed=1',
    `hash_seed=${uuid}`,
    'root_owner=0:0',
  ].join(',');
  const abort = signal === undefined ? {} : { signal };
  {
    await using output = await open(file, 'wx', 0o644);
    await output.truncate(sizeBytes);
  }
  try {
    await run(
      [
        'mke2fs',
        '-q',
        '-F',
        '-t',
        'ext4',
        '-b',
        '4096',
        '-L',
        ROOT_LABEL,
        '-U',
        uuid,
        '-m',
        '0',
        '-J',
        'size=16',
        '-E',
        extended,
        '-d',
        folder,
        file,
      ],
      { timeoutMs: 30 * 60_000, env: { ...process.env, LC_ALL: 'C' }, ...abort },
    );
  } catch (error) {
    if (!(error instanceof AenvError)) throw error;
    // libext2fs says this of its own file system; a full disk of the host is "No space left on device".
    if (/Could not allocate (block|inode)/i.test(error.message)) {
      throw new AenvError('image_invalid', `the image does not fit on a disk of ${sizeBytes} bytes`, {
        remediation: 'Use a larger disk or a smaller image.',
        cause: error,
      });
    }
    if (/No space left on device/.test(error.message)) throw new AenvError('no_space', error.message, { cause: error });
    throw error;
  }
  await copyRootAttributes(folder, file, abort);
  await using written = await open(file, 'r');
  // Volumes stack on it: from here on nothing may change it.
  await written.chmod(0o444);
  await written.sync();
}

/** mke2fs makes the root folder anew; an image may want another mode or owner for it (a sticky one, for example). */
async function copyRootAttributes(folder: string, file: string, abort: { signal?: AbortSignal }): Promise<void> {
  const root = await stat(folder);
  const seconds = Math.max(0, Math.floor(root.mtimeMs / 1000));
  const fields = { mode: `0${root.mode.toString(8)}`, uid: root.uid, gid: root.gid, mtime: `@${seconds}` };
  const commands = Object.entries(fields).map(([name, value]) => `set_inode_field <2> ${name} ${value}\n`);
  await run(['debugfs', '-w', '-f', '-', file], { input: commands.join(''), ...abort });
}

/** A UUID (version 8, RFC 9562) that is the same for the same text. */
export function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
