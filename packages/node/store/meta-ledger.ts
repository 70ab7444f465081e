import type { Database } from './database.ts';

/** Single values that belong to this home folder, such as the id of the node. */
export class MetaLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get(key: string): string | undefined {
    const value = this.#database.get('SELECT value FROM meta WHERE key = :key', { key })?.value;
    return typeof value === 'string' ? value : undefined;
  }

  set(key: string, value: string): void {
    this.#database.run('INSERT OR REPLACE INTO meta (key, value) VALUES (:key, :value)', { key, value });
  }
}
