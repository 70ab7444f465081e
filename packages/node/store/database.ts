import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { MIGRATIONS } from './migrations.ts';
import { type SqliteFault, sqliteFault, toAenvError } from './sqlite-errors.ts';

export type Parameters = Readonly<Record<string, SQLInputValue>>;

/** A row as SQLite gives it; every reader parses it with zod. */
export type RawRow = Readonly<Record<string, unknown>>;

/**
 * One SQLite file that this process alone may open. Synchronous: a ledger write is a few pages and one fsync. All
 * failures come out as AenvError: `no_space` when the disk is full, else `ledger_failed`.
 */
export class Database implements Disposable {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  #depth = 0;

  private constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  /**
   * Opens or creates the file (0600, its folder 0700) and brings it to the newest schema.
   *
   * The exclusive locking mode of SQLite is the ownership lock of the home folder: it is held until close() and falls
   * with the process. Nothing else in this process may open and close the file, since that would drop its locks
   * (fcntl_locking(2)).
   * @param busyMs how long to wait for another owner to leave, `ms`
   * @throws AenvError `already_running` when another process owns the file
   */
  static open(path: string, busyMs = 2000): Database {
    let sqlite: DatabaseSync | undefined;
    try {
      prepareFile(path);
      sqlite = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true });
      // The order matters: exclusive before WAL keeps the index in memory and needs no shared-memory file.
      sqlite.exec('PRAGMA locking_mode = EXCLUSIVE');
      sqlite.exec('PRAGMA journal_mode = WAL');
      sqlite.exec('PRAGMA synchronous = FULL');
      sqlite.exec('PRAGMA secure_delete = ON');
      // Takes the lock at once rather than at the first write.
      sqlite.exec('BEGIN IMMEDIATE; COMMIT');
      migrate(sqlite, path);
      return new Database(sqlite);
    } catch (error) {
      sqlite?.close();
      const fault: SqliteFault = sqliteFault(error);
      if (fault === 'busy') {
        throw new AenvError('already_running', `another process owns the ledger ${path}`, { cause: error });
      }
      throw toAenvError(error, `the ledger ${path} could not be opened`);
    }
  }

  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, parameters: Parameters = {}): number {
    return this.#guard(sql, (statement) => Number(statement.run(parameters).changes));
  }

  get(sql: string, parameters: Parameters = {}): RawRow | undefined {
    return this.#guard(sql, (statement) => statement.get(parameters));
  }

  all(sql: string, parameters: Parameters = {}): readonly RawRow[] {
    return this.#guard(sql, (statement) => statement.all(parameters));
  }

  /** All or nothing. A transaction inside another one joins it. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    this.#exec('BEGIN IMMEDIATE');
    this.#depth = 1;
    try {
      const result = work();
      this.#exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite has already rolled back by itself after some errors, such as a full disk.
      if (this.#sqlite.isTransaction) this.#sqlite.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth = 0;
    }
  }

  /** Writes the log back into the file and gives up the ownership. Idempotent. */
  close(): void {
    if (!this.#sqlite.isOpen) return;
    this.#statements.clear();
    this.#sqlite.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #exec(sql: string): void {
    try {
      this.#sqlite.exec(sql);
    } catch (error) {
      throw toAenvError(error, 'the ledger failed');
    }
  }

  #guard<T>(sql: string, use: (statement: StatementSync) => T): T {
    try {
      let statement = this.#statements.get(sql);
      if (statement === undefined) {
        statement = this.#sqlite.prepare(sql);
        this.#statements.set(sql, statement);
      }
      return use(statement);
    } catch (error) {
      throw toAenvError(error, 'the ledger failed');
    }
  }
}

function prepareFile(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  // The write-ahead log takes over the mode of the database file.
  chmodSync(path, 0o600);
}

function migrate(sqlite: DatabaseSync, path: string): void {
  const version = Number(sqlite.prepare('PRAGMA user_version').get()?.user_version);
  if (version > MIGRATIONS.length) {
    throw new AenvError('ledger_failed', `the ledger ${path} was written by a newer version (schema ${version})`, {
      remediation: 'Run the version of aenv that wrote it, or a newer one.',
    });
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    sqlite.exec('BEGIN IMMEDIATE');
    try {
      sqlite.exec(sql);
      sqlite.exec(`PRAGMA user_version = ${index + 1}`);
      sqlite.exec('COMMIT');
    } catch (error) {
      if (sqlite.isTransaction) sqlite.exec('ROLLBACK');
      throw error;
    }
  }
}
