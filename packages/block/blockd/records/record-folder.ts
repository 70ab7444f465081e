import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { removeUnfinished, syncFolder, writeDurable } from '@aenv/platform/files/durable.ts';
import type { z } from 'zod';

const SUFFIX = '.json';

/**
 * Records of one kind, a file each. A record is complete or absent, unless something else than a daemon has written to its
 * file: such a one is damaged, and stays where it is until it is removed.
 */
export class RecordFolder<T> {
  readonly #folder: string;
  readonly #schema: z.ZodType<T>;
  /** why, by name */
  readonly #damaged = new Map<string, AenvError>();

  constructor(folder: string, schema: z.ZodType<T>) {
    this.#folder = folder;
    this.#schema = schema;
  }

  /**
   * All records but damaged ones. What a daemon that was killed has begun to write goes.
   * @throws as the file system does, which says nothing of what is in a file
   */
  async load(): Promise<T[]> {
    await removeUnfinished(this.#folder);
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith(SUFFIX) && !name.startsWith('.'));
    const records = names.sort().map(async (file) => {
      const path = join(this.#folder, file);
      const record = this.#parse(await readFile(path, 'utf8'));
      if (record !== undefined) return [record];
      this.#damaged.set(file.slice(0, -SUFFIX.length), damaged(path));
      return [];
    });
    return (await Promise.all(records)).flat();
  }

  /** Why those that are damaged cannot be used, by their names: what they refer to must not be taken for garbage. */
  get damaged(): ReadonlyMap<string, AenvError> {
    return this.#damaged;
  }

  /** @throws AenvError `ledger_failed` when the record of this name is damaged */
  requireSound(name: string): void {
    const error = this.#damaged.get(name);
    if (error !== undefined) throw error;
  }

  /** Durable when it resolves. */
  async put(name: string, record: T): Promise<void> {
    await writeDurable(join(this.#folder, name + SUFFIX), `${JSON.stringify(record)}\n`, 0o600);
  }

  /** Durable when it resolves; no error when there is none. */
  async remove(name: string): Promise<void> {
    await rm(join(this.#folder, name + SUFFIX), { force: true });
    await syncFolder(this.#folder);
    this.#damaged.delete(name);
  }

  #parse(text: string): T | undefined {
    try {
      return this.#schema.parse(JSON.parse(text));
    } catch {
      return undefined;
    }
  }
}

function damaged(path: string): AenvError {
  return new AenvError('ledger_failed', `the record ${path} is damaged`, {
    remediation: `Put ${path} back from a backup and start the daemon again, or delete what it belongs to.`,
  });
}
