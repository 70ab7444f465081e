import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { removeUnfinished, syncFolder, writeDurable } from '@aenv/platform/files/durable.ts';
import type { z } from 'zod';

const SUFFIX = '.json';

/** Records of one kind, a file each. A record is complete or absent. */
export class RecordFolder<T> {
  readonly #folder: string;
  readonly #schema: z.ZodType<T>;

  constructor(folder: string, schema: z.ZodType<T>) {
    this.#folder = folder;
    this.#schema = schema;
  }

  /**
   * All records. What a daemon that was killed has begun to write goes.
   * @throws AenvError `ledger_failed` naming one that cannot be read: what it refers to must not be taken for garbage
   */
  async load(): Promise<T[]> {
    await removeUnfinished(this.#folder);
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith(SUFFIX) && !name.startsWith('.'));
    return await Promise.all(names.sort().map((name) => this.#read(join(this.#folder, name))));
  }

  /** Durable when it resolves. */
  async put(name: string, record: T): Promise<void> {
    await writeDurable(join(this.#folder, name + SUFFIX), `${JSON.stringify(record)}\n`, 0o600);
  }

  /** Durable when it resolves; no error when there is none. */
  async remove(name: string): Promise<void> {
    await rm(join(this.#folder, name + SUFFIX), { force: true });
    await syncFolder(this.#folder);
  }

  async #read(path: string): Promise<T> {
    const fail = (cause: unknown) =>
      new AenvError('ledger_failed', `the record ${path} cannot be read`, {
        remediation: `Look at ${path}; if its disk is not needed any more, remove the file.`,
        cause,
      });
    let value: unknown;
    try {
      value = JSON.parse(await readFile(path, 'utf8'));
    } catch (error) {
      throw fail(error);
    }
    const parsed = this.#schema.safeParse(value);
    if (!parsed.success) throw fail(parsed.error);
    return parsed.data;
  }
}
