import { readdir } from 'node:fs/promises';
import { type EntryInfo, FileType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { AccountTable } from '../users/accounts.ts';
import { entryInfo } from './entry-info.ts';
import { errnoOf } from './errors.ts';

// An answer is one message in memory, on both sides.
const ENTRIES_MAX = 100_000;
// Calls of lstat(2) at once: as many as make the thread pool busy.
const PARALLEL = 16;
const SLASH = Buffer.from('/');

/**
 * The entries below a folder, `depth` levels deep, each folder before what is in it, names sorted by their bytes. Links
 * to folders are not followed, except the root itself. Names that are not UTF-8 are shown with U+FFFD. What vanishes
 * meanwhile is left out.
 * @param shown the path that answers carry
 */
export async function listTree(shown: string, depth: number, accounts: AccountTable): Promise<EntryInfo[]> {
  const entries: EntryInfo[] = [];
  const prefix = shown === '/' ? '' : shown;
  await listFolder(Buffer.from(shown), prefix, depth, accounts, entries);
  return entries;
}

async function listFolder(
  folder: Buffer,
  shown: string,
  depth: number,
  accounts: AccountTable,
  entries: EntryInfo[],
): Promise<void> {
  const names = (await readdir(folder, { encoding: 'buffer' })).sort(Buffer.compare);
  if (entries.length + names.length > ENTRIES_MAX) {
    throw new AenvError('invalid_request', `there are more than ${ENTRIES_MAX} entries; list with a smaller depth`);
  }
  for (let start = 0; start < names.length; start += PARALLEL) {
    const batch = names.slice(start, start + PARALLEL).map(async (name) => {
      const actual = Buffer.concat([folder, SLASH, name]);
      return { actual, info: await describe(`${shown}/${name.toString()}`, accounts, actual) };
    });
    for (const { actual, info } of await Promise.all(batch)) {
      if (info === undefined) continue;
      entries.push(info);
      if (depth > 1 && info.type === FileType.DIRECTORY && info.symlinkTarget === undefined) {
        await listFolder(actual, info.path, depth - 1, accounts, entries).catch(ignoreVanished);
      }
    }
  }
}

async function describe(shown: string, accounts: AccountTable, actual: Buffer): Promise<EntryInfo | undefined> {
  try {
    return await entryInfo(shown, accounts, actual);
  } catch (error) {
    return ignoreVanished(error);
  }
}

function ignoreVanished(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error;
}
