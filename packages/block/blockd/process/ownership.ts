import { DatabaseSync } from 'node:sqlite';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Held as long as this process owns a folder. */
export interface Ownership {
  close(): void;
}

/**
 * Takes a folder for this process alone. Two daemons that append to one layer would destroy it, so this is a lock of the
 * kernel, which falls with the process however that ends: SQLite's exclusive mode, since Node itself has no file locks.
 * @throws AenvError `already_running`
 */
export function takeOwnership(path: string): Ownership {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 2_000 });
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('PRAGMA journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    throw new AenvError('already_running', `another block daemon owns ${path}`, { cause: error });
  }
}
