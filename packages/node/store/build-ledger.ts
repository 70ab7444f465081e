import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { json, optional, time, withoutVersion } from './columns.ts';
import type { Database, RawRow } from './database.ts';

/** A build of a template: what it shall be, and how far it is. */
export interface BuildRecord {
  readonly buildId: string;
  readonly templateId: string;
  readonly status: 'waiting' | 'building' | 'ready' | 'error';
  readonly wanted: WantedTemplate;
  /** why it failed */
  readonly reason?: string;
  readonly createdAt: Date;
  readonly finishedAt?: Date;
}

export interface WantedTemplate {
  readonly alias: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  /** absent: as the image has it, or the default */
  readonly diskSizeMb?: number | undefined;
  /** absent: `default` */
  readonly tags?: readonly string[] | undefined;
}

const Row = z.object({
  build_id: z.string(),
  template_id: z.string(),
  status: z.enum(['waiting', 'building', 'ready', 'error']),
  wanted: json(
    z.object({
      v: z.literal(1),
      alias: z.string(),
      cpuCount: z.int(),
      memoryMb: z.int(),
      diskSizeMb: z.int().optional(),
      tags: z.array(z.string()).optional(),
    }),
  ),
  reason: z.string().nullable(),
  created_at: time,
  finished_at: time.nullable(),
});

/** Builds that are not under way and still remembered. */
const KEPT = 1000;

/** The rows of builds; the oldest that are not under way are forgotten. */
export class BuildLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  insert(build: BuildRecord): void {
    this.#database.transaction(() => {
      this.#database.run(
        `INSERT INTO template_builds (build_id, template_id, alias, status, wanted, created_at)
         VALUES (:buildId, :templateId, :alias, :status, :wanted, :createdAt)`,
        {
          buildId: build.buildId,
          templateId: build.templateId,
          alias: build.wanted.alias,
          status: build.status,
          wanted: JSON.stringify({ v: 1, ...build.wanted }),
          createdAt: build.createdAt.getTime(),
        },
      );
      this.#database.run(
        `DELETE FROM template_builds WHERE build_id IN (SELECT build_id FROM template_builds
           WHERE status <> 'building' ORDER BY created_at DESC, build_id LIMIT -1 OFFSET :kept)`,
        { kept: KEPT },
      );
    });
  }

  get(buildId: string): BuildRecord | undefined {
    const row = this.#database.get('SELECT * FROM template_builds WHERE build_id = :buildId', { buildId });
    return row === undefined ? undefined : toRecord(row);
  }

  /** The build that has not ended for this alias, if there is one; the newest of several. */
  unfinishedOf(alias: string): BuildRecord | undefined {
    const row = this.#database.get(
      `SELECT * FROM template_builds WHERE alias = :alias AND status IN ('waiting', 'building')
         ORDER BY created_at DESC, build_id LIMIT 1`,
      { alias },
    );
    return row === undefined ? undefined : toRecord(row);
  }

  /** Builds that are under way. */
  building(): readonly BuildRecord[] {
    return this.#database.all("SELECT * FROM template_builds WHERE status = 'building'").map(toRecord);
  }

  /** @returns whether it was waiting until now */
  begin(buildId: string): boolean {
    const sql = "UPDATE template_builds SET status = 'building' WHERE build_id = :buildId AND status = 'waiting'";
    return this.#database.run(sql, { buildId }) > 0;
  }

  finish(buildId: string, status: 'ready' | 'error', at: Date, reason?: string): void {
    this.#database.run(
      `UPDATE template_builds SET status = :status, reason = :reason, finished_at = :at WHERE build_id = :buildId`,
      { buildId, status, reason: reason ?? null, at: at.getTime() },
    );
  }

  /** Ends what an earlier run of the node has left. @returns how many builds */
  failUnfinished(at: Date, reason: string): number {
    return this.#database.run(
      `UPDATE template_builds SET status = 'error', reason = :reason, finished_at = :at
         WHERE status IN ('waiting', 'building')`,
      { reason, at: at.getTime() },
    );
  }

  /** Forgets the builds of a template that is removed. @returns how many */
  removeOf(templateId: string): number {
    return this.#database.run('DELETE FROM template_builds WHERE template_id = :templateId', { templateId });
  }
}

function toRecord(raw: RawRow): BuildRecord {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    const id = String(raw.build_id);
    throw new AenvError('ledger_failed', `the ledger's row of build ${id} is damaged`, { cause: parsed.error });
  }
  const row = parsed.data;
  return {
    buildId: row.build_id,
    templateId: row.template_id,
    status: row.status,
    wanted: withoutVersion(row.wanted),
    createdAt: row.created_at,
    ...optional('reason', row.reason),
    ...optional('finishedAt', row.finished_at),
  };
}
