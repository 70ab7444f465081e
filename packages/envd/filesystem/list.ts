import { readdir } from 'node:fs/promises';
import { type EntryInfo, FileType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isStaging } from '../files/staging.ts';
import { describeEntry, type EntrySources } from './entry-info.ts';
import { errnoOf } from './errors.ts';

// An answer is one message in memory, on both sides.
const ENTRIES_MAX = 100_000;
// Calls of lstat(2) at once: as many as make the thread pool busy.
const PARALLEL = 16;
// Descriptions whose metadata is awaited together: on the way it is a few kilobytes each at most.
const METADATA_AT_ONCE = 1000;
const SLASH = Buffer.from('/');

/**
 * The entries below a folder, `depth` levels deep, each folder before what is in it, names sorted by their bytes. Links
 * to folders are not followed, except the root itself. Names that are not UTF-8 are shown with U+FFFD. What vanishes
 * meanwhile is left out, and so are unfinished uploads.
 * @param shown the path that answers carry
 */
export async function listTree(shown: string, depth: number, sources: EntrySources): Promise<EntryInfo[]> {
  const listing = new Listing(sources);
  await listing.folder(Buffer.from(shown), shown === '/' ? '' : shown, depth);
  return listing.finish();
}

class Listing {
  readonly #sources: EntrySources;
  readonly #entries: EntryInfo[] = [];
  readonly #metadata: Promise<void>[] = [];

  constructor(sources: EntrySources) {
    this.#sources = sources;
  }

  async folder(folder: Buffer, shown: string, depth: number): Promise<void> {
    const names = (await readdir(folder, { encoding: 'buffer' })).sort(Buffer.compare);
    if (this.#entries.length + names.length > ENTRIES_MAX) {
      throw new AenvError('invalid_request', `there are more than ${ENTRIES_MAX} entries; list with a smaller depth`);
    }
    for (let start = 0; start < names.length; start += PARALLEL) {
      const batch = names.slice(start, start + PARALLEL).map(async (name) => {
        const actual = Buffer.concat([folder, SLASH, name]);
        return { actual, info: await this.#describe(name.toString(), shown, actual) };
      });
      for (const { actual, info } of await Promise.all(batch)) {
        if (info === undefined) continue;
        this.#entries.push(info);
        if (depth > 1 && info.type === FileType.DIRECTORY && info.symlinkTarget === undefined) {
          await this.folder(actual, info.path, depth - 1).catch(ignoreVanished);
        }
      }
      if (this.#metadata.length >= METADATA_AT_ONCE) await this.#settle();
    }
  }

  async finish(): Promise<EntryInfo[]> {
    await this.#settle();
    return this.#entries;
  }

  async #describe(name: string, folder: string, actual: Buffer): Promise<EntryInfo | undefined> {
    if (isStaging(name)) return undefined;
    try {
      const { info, metadata } = await describeEntry(`${folder}/${name}`, this.#sources, actual);
      if (metadata !== undefined) this.#metadata.push(metadata);
      return info;
    } catch (error) {
      return ignoreVanished(error);
    }
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#metadata.splice(0));
  }
}

function ignoreVanished(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error;
}
