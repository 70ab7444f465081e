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
  const { info, holder } = await describeEntry(shown, sources.accounts, actual);
  if (holder !== undefined) await addMetadata([{ info, holder }], sources.attributes);
  return info;
}

/** A description that has no metadata yet. */
export interface BareEntry {
  readonly info: EntryInfo;
  /** what its metadata is read from; undefined for what cannot have any */
  readonly holder: string | Buffer | undefined;
}

/** Completes descriptions, all together. */
export async function addMetadata(entries: readonly BareEntry[], attributes: Attributes): Promise<void> {
  const holders = entries.map(({ holder }) => holder).filter((holder) => holder !== undefined);
  const found = (await attributes.read(holders))[Symbol.iterator]();
  for (const { info, holder } of entries) {
    const metadata = holder === undefined ? undefined : found.next().value;
    if (metadata !== undefined) info.metadata = metadata;
  }
}

/** Describes one entry without its metadata; see `entryInfo`. */
export async function describeEntry(
  shown: string,
  accounts: AccountTable,
  actual: string | Buffer,
): Promise<BareEntry> {
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
  const mayHold = type === FileType.FILE || type === FileType.DIRECTORY;
  return { info, holder: mayHold ? (target?.path ?? actual) : undefined };
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
