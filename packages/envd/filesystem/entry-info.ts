import type { Stats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { type EntryInfo, EntryInfoSchema, FileType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { create } from '@bufbuild/protobuf';
import type { Attributes } from '../metadata/attributes.ts';
import type { AccountTable } from '../users/accounts.ts';
import { formatMode } from './permissions.ts';

/** What descriptions are made from, besides the entries themselves. */
export interface EntrySources {
  readonly accounts: AccountTable;
  readonly attributes: Attributes;
}

/**
 * Describes one entry, with its metadata.
 * @param shown the path that the answer carries
 * @param actual where the entry is, as bytes where its name may not be UTF-8
 * @throws the error of lstat(2)
 */
export async function entryInfo(
  shown: string,
  sources: EntrySources,
  actual: string | Buffer = shown,
): Promise<EntryInfo> {
  const { info, metadata } = await describeEntry(shown, sources, actual);
  await metadata;
  return info;
}

/** Like `entryInfo`, for many entries at once: the metadata is in the description when `metadata` has resolved. */
export async function describeEntry(
  shown: string,
  { accounts, attributes }: EntrySources,
  actual: string | Buffer,
): Promise<{ readonly info: EntryInfo; readonly metadata: Promise<void> | undefined }> {
  const own = await lstat(actual);
  const target = own.isSymbolicLink() ? await linkTarget(actual) : undefined;
  const type = typeOf(target?.stats ?? own);
  const info = create(EntryInfoSchema, {
    name: posix.basename(shown),
    type,
    path: shown,
    size: BigInt(own.size),
    mode: (target?.stats ?? own).mode & 0o777,
    permissions: formatMode(own.mode),
    owner: accounts.userName(own.uid),
    group: accounts.groupName(own.gid),
    modifiedTime: timestamp(own.mtimeMs),
    ...(target === undefined ? {} : { symlinkTarget: target.path.toString() }),
  });
  // Nothing else can have attributes of users; those of a link are its target's, like its type and its mode.
  if (type !== FileType.FILE && type !== FileType.DIRECTORY) return { info, metadata: undefined };
  const metadata = attributes.read(target?.path ?? actual).then((found) => {
    if (found !== undefined) info.metadata = found;
  });
  return { info, metadata };
}

function typeOf(stats: Stats): FileType {
  if (stats.isDirectory()) return FileType.DIRECTORY;
  if (stats.isFile()) return FileType.FILE;
  // Only for a link that leads nowhere: clients do not show entries without a type.
  if (stats.isSymbolicLink()) return FileType.SYMLINK;
  return FileType.UNSPECIFIED;
}

/** Where a link ends. One that leads nowhere is described by itself. */
async function linkTarget(link: string | Buffer): Promise<{ path: Buffer; stats: Stats } | undefined> {
  try {
    const path = await realpath(link, 'buffer');
    return { path, stats: await stat(path) };
  } catch {
    return undefined;
  }
}

function timestamp(ms: number): { seconds: bigint; nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.min(999_999_999, Math.round((ms - seconds * 1000) * 1e6)) };
}
