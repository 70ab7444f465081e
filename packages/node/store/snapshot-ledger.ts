import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { DriveSchema } from '../sandboxes/drives/schema.ts';
import { DEFAULT_TAG } from '../templates/reference.ts';
import { json, optional, time } from './columns.ts';
import type { Database, Parameters, RawRow } from './database.ts';
import { decodePageToken, encodePageToken } from './page-token.ts';
import type { SnapshotName, SnapshotPage, SnapshotQuery, SnapshotRecord, SnapshotUsage } from './snapshot-record.ts';
import { StartColumn } from './start-column.ts';

const Row = z.object({
  template_id: z.string(),
  checkpoint_id: z.string(),
  alias: z.string().nullable(),
  tag: z.string().nullable(),
  sandbox_id: z.string(),
  created_at: time,
  cpu_count: z.int(),
  memory_mb: z.int(),
  disk_size_mb: z.int(),
  envd_version: z.string(),
  start: json(StartColumn),
  drives: json(z.array(DriveSchema)),
  bytes: z.int().nullable(),
});

/** The rows of all snapshots that were acknowledged. A change that returned is on the disk. */
export class SnapshotLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Adds a snapshot and moves its name to it, in one step. One that had the name before stays, without it. */
  add(snapshot: SnapshotRecord): void {
    this.#database.transaction(() => {
      const { name } = snapshot;
      if (name !== undefined) {
        this.#database.run('UPDATE snapshots SET alias = NULL, tag = NULL WHERE alias = :alias AND tag = :tag', {
          ...name,
        });
      }
      this.#database.run(
        `INSERT INTO snapshots VALUES (:template_id, :checkpoint_id, :alias, :tag, :sandbox_id, :created_at,
           :cpu_count, :memory_mb, :disk_size_mb, :envd_version, :start, :drives, :bytes)`,
        toRow(snapshot),
      );
    });
  }

  get(templateId: string): SnapshotRecord | undefined {
    const row = this.#database.get('SELECT * FROM snapshots WHERE template_id = :id', { id: templateId });
    return row === undefined ? undefined : toRecord(row);
  }

  byName({ alias, tag }: SnapshotName): SnapshotRecord | undefined {
    const row = this.#database.get('SELECT * FROM snapshots WHERE alias = :alias AND tag = :tag', { alias, tag });
    return row === undefined ? undefined : toRecord(row);
  }

  /** Ids of the captured machines that snapshots need. */
  checkpointIds(): readonly string[] {
    return this.#database.all('SELECT checkpoint_id FROM snapshots').map((row) => String(row.checkpoint_id));
  }

  /** How many there are, and what they take, as far as that was counted. */
  usage(): SnapshotUsage {
    const row = this.#database.get('SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM snapshots');
    return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
  }

  /**
   * One page by key (time, id), so that rows which come or go between two pages neither repeat nor hide others.
   * @throws AenvError `invalid_request` for a bad token
   */
  list({ sandboxId, name, tag, limit, nextToken }: SnapshotQuery): SnapshotPage {
    const conditions = ['TRUE'];
    const parameters: Record<string, string | number> = {};
    if (sandboxId !== undefined) {
      conditions.push('sandbox_id = :sandbox_id');
      parameters.sandbox_id = sandboxId;
    }
    if (name !== undefined) {
      // An id has the default tag and no other.
      const byId = tag === undefined || tag === DEFAULT_TAG ? 'template_id = :name' : 'FALSE';
      const byName = tag === undefined ? 'alias = :name' : '(alias = :name AND tag = :tag)';
      conditions.push(`(${byId} OR ${byName})`);
      parameters.name = name;
      if (tag !== undefined) parameters.tag = tag;
    }
    if (nextToken !== undefined) {
      const cursor = decodePageToken(nextToken, 'desc');
      conditions.push('(created_at, template_id) < (:cursor_at, :cursor_id)');
      parameters.cursor_at = cursor.at.getTime();
      parameters.cursor_id = cursor.id;
    }
    const rows = this.#database.all(
      `SELECT * FROM snapshots WHERE ${conditions.join(' AND ')}
         ORDER BY created_at DESC, template_id DESC LIMIT :limit`,
      { ...parameters, limit: limit + 1 },
    );
    const items = rows.slice(0, limit).map(toRecord);
    const last = items.at(-1);
    if (rows.length <= limit || last === undefined) return { items };
    return { items, nextToken: encodePageToken({ at: last.createdAt, id: last.templateId }, 'desc') };
  }

  /** @returns whether there was one */
  remove(templateId: string): boolean {
    return this.#database.run('DELETE FROM snapshots WHERE template_id = :id', { id: templateId }) > 0;
  }
}

function toRecord(raw: RawRow): SnapshotRecord {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    const id = String(raw.template_id);
    throw new AenvError('ledger_failed', `the ledger's row of snapshot ${id} is damaged`, { cause: parsed.error });
  }
  const row = parsed.data;
  return {
    templateId: row.template_id,
    checkpointId: row.checkpoint_id,
    ...(row.alias === null || row.tag === null ? {} : { name: { alias: row.alias, tag: row.tag } }),
    sandboxId: row.sandbox_id,
    createdAt: row.created_at,
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    envdVersion: row.envd_version,
    start: row.start,
    drives: row.drives,
    ...optional('bytes', row.bytes),
  };
}

function toRow(snapshot: SnapshotRecord): Parameters {
  return {
    template_id: snapshot.templateId,
    checkpoint_id: snapshot.checkpointId,
    alias: snapshot.name?.alias ?? null,
    tag: snapshot.name?.tag ?? null,
    sandbox_id: snapshot.sandboxId,
    created_at: snapshot.createdAt.getTime(),
    cpu_count: snapshot.cpuCount,
    memory_mb: snapshot.memoryMb,
    disk_size_mb: snapshot.diskSizeMb,
    envd_version: snapshot.envdVersion,
    start: JSON.stringify({ v: 1, ...snapshot.start }),
    drives: JSON.stringify(snapshot.drives),
    bytes: snapshot.bytes ?? null,
  };
}
