import { readdir } from 'node:fs/promises';
import { type EntryInfo, FileType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isStaging } from '../files/staging.ts';
import { addMetadata, type BareEntry, describeEntry, type EntrySources } from './entry-info.ts';
import { errnoOf } from './errors.ts';

// An answer is one message in memory, on both sides.
const ENTRIES_MAX = 100_000;
// Calls of lstat(2) at once: as many as make the thread pool busy.
const PARALLEL = 16;
// Entries whose metadata is read together.
const METADATA_BATCH = 1000;
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
  readonly #entries: BareEntry[] = [];

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
        return { actual, entry: await this.#describe(name.toString(), shown, actual) };
      });
      for (const { actual, entry } of await Promise.all(batch)) {
        if (entry === undefined) continue;
        this.#entries.push(entry);
        const { info } = entry;
        if (depth > 1 && info.type === FileType.DIRECTORY && info.symlinkTarget === undefined) {
          await this.folder(actual, info.path, depth - 1).catch(ignoreVanished);
        }
      }
    }
  }

  async finish(): Promise<EntryInfo[]> {
    for (let start = 0; start < this.#entries.length; start += METADATA_BATCH) {
      await addMetadata(this.#entries.slice(start, start + METADATA_BATCH), this.#sources.attributes);
    }
    return this.#entries.map(({ info }) => info);
  }

  async #describe(name: string, folder: string, actual: Buffer): Promise<BareEntry | undefined> {
    if (isStaging(name)) return undefined;
    try {
      return await describeEntry(`${folder}/${name}`, this.#sources.accounts, actual);
    } catch (error) {
      return ignoreVanished(error);
    }
  }
}

function ignoreVanished(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error;
}
