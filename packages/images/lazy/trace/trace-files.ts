import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { requireDigest } from '../../oci/digest.ts';
import { decodeTrace, encodeTrace, type TraceRecord } from './format.ts';

/** Traces that are kept; each has at most 1.5 MiB. */
const MAX_FILES = 256;

/** The traces of layers, each named by the digest of its layer. A trace is a hint: one that cannot be read is none. */
export class TraceFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(digest: string): Promise<readonly TraceRecord[] | undefined> {
    const path = this.#path(digest);
    try {
      const records = decodeTrace(await readFile(path));
      // Those not used for longest go first.
      if (records !== undefined) await utimes(path, new Date(), new Date());
      return records;
    } catch {
      return undefined;
    }
  }

  /** @throws when the disk is full or broken */
  async write(digest: string, records: readonly TraceRecord[]): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.#makeRoom();
    await writeDurable(this.#path(digest), encodeTrace(records), 0o600);
  }

  async #makeRoom(): Promise<void> {
    const names = await readdir(this.#folder);
    if (names.length < MAX_FILES) return;
    const ages = await Promise.all(
      names.map(async (name) => ({ name, usedAt: (await stat(join(this.#folder, name))).mtimeMs })),
    );
    ages.sort((a, b) => a.usedAt - b.usedAt);
    for (const { name } of ages.slice(0, names.length - MAX_FILES + 1)) await rm(join(this.#folder, name));
  }

  #path(digest: string): string {
    const { algorithm, hex } = requireDigest(digest);
    return join(this.#folder, `${algorithm}-${hex}`);
  }
}
