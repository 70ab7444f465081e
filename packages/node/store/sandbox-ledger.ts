import type { ListQuery, SandboxState } from '../sandboxes/contract.ts';
import type { Database } from './database.ts';
import { listSandboxes, type SandboxPage } from './sandbox-query.ts';
import { LIVE_STATES, type SandboxChange, type SandboxRecord } from './sandbox-record.ts';
import { applyChange, toSandboxRecord, toSandboxRow } from './sandbox-row.ts';

const COLUMNS = [
  'sandbox_id',
  'state',
  'end_reason',
  'end_message',
  'template_id',
  'alias',
  'created_at',
  'started_at',
  'end_at',
  'ended_at',
  'cpu_count',
  'memory_mb',
  'disk_size_mb',
  'envd_version',
  'envd_access_token',
  'traffic_access_token',
  'host_secret',
  'slot_index',
  'netns',
  'volume_id',
  'incarnation',
  'boot_id',
  'metadata',
  'options',
  'vm',
  'boot',
  'checkpoint',
  'paused_at',
];
const INSERT = `INSERT INTO sandboxes (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `:${name}`).join(', ')})`;
const UPDATE = `UPDATE sandboxes SET ${COLUMNS.slice(1)
  .map((name) => `${name} = :${name}`)
  .join(', ')} WHERE sandbox_id = :sandbox_id`;
const IS_LIVE = `state NOT IN ('ended', 'lost')`;
const IS_OVER = `state IN ('ended', 'lost')`;

/** The rows of all sandboxes, also of those that are over. A change that returned is on the disk. */
export class SandboxLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws AenvError `ledger_failed` when the id is taken */
  insert(record: SandboxRecord): void {
    this.#database.run(INSERT, toSandboxRow(record));
  }

  /** The record in whatever state it is. */
  get(sandboxId: string): SandboxRecord | undefined {
    const row = this.#database.get('SELECT * FROM sandboxes WHERE sandbox_id = :id', { id: sandboxId });
    return row === undefined ? undefined : toSandboxRecord(row);
  }

  /**
   * Changes the record if it is in one of the expected states.
   * @returns the record as it is now, or undefined when it is unknown or in another state (nothing was changed then)
   */
  update(
    sandboxId: string,
    expected: SandboxState | readonly SandboxState[],
    change: SandboxChange,
  ): SandboxRecord | undefined {
    return this.#database.transaction(() => {
      const record = this.get(sandboxId);
      if (record === undefined) return undefined;
      const matches = typeof expected === 'string' ? record.state === expected : expected.includes(record.state);
      if (!matches) return undefined;
      const changed = applyChange(record, change);
      this.#database.run(UPDATE, toSandboxRow(changed));
      return changed;
    });
  }

  /** Everything that holds, or may hold, resources of the host; oldest first. */
  live(): readonly SandboxRecord[] {
    return this.#database
      .all(`SELECT * FROM sandboxes WHERE ${IS_LIVE} ORDER BY started_at, sandbox_id`)
      .map(toSandboxRecord);
  }

  /** One page of the live ones. @throws AenvError `invalid_request` for a bad token */
  list(query: ListQuery): SandboxPage {
    return listSandboxes(this.#database, query);
  }

  /** How many are in each live state. */
  countLive(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = Object.fromEntries(LIVE_STATES.map((state) => [state, 0]));
    for (const row of this.#database.all(
      `SELECT state, count(*) AS n FROM sandboxes WHERE ${IS_LIVE} GROUP BY state`,
    )) {
      counts[String(row.state)] = Number(row.n);
    }
    return counts;
  }

  /**
   * Forgets those that ended before `endedBefore`, and the oldest ones beyond `keep`.
   * @returns how many were removed
   */
  prune(endedBefore: Date, keep = 10_000): number {
    return this.#database.transaction(() => {
      const old = this.#database.run(`DELETE FROM sandboxes WHERE ${IS_OVER} AND ended_at < :before`, {
        before: endedBefore.getTime(),
      });
      const surplus = this.#database.run(
        `DELETE FROM sandboxes WHERE sandbox_id IN (
           SELECT sandbox_id FROM sandboxes WHERE ${IS_OVER} ORDER BY ended_at DESC, sandbox_id LIMIT -1 OFFSET :keep)`,
        { keep },
      );
      return old + surplus;
    });
  }
}
