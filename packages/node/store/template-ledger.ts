import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { Template } from '../templates/contract.ts';
import { localLayers } from '../templates/layers.ts';
import { json, time } from './columns.ts';
import type { Database, RawRow } from './database.ts';
import { StartColumn } from './start-column.ts';

const Layer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('file'), path: z.string() }),
  z.object({
    kind: z.literal('remote'),
    host: z.string(),
    repository: z.string(),
    digest: z.string(),
    size: z.int().min(0),
  }),
]);

const Row = z.object({
  template_id: z.string(),
  build_id: z.string(),
  cpu_count: z.int(),
  memory_mb: z.int(),
  disk_size_mb: z.int(),
  created_at: time,
  updated_at: time,
  last_spawned_at: time.nullable(),
  spawn_count: z.int(),
  envd_version: z.string(),
  source: json(
    z.union([
      z.object({ v: z.literal(3), imageDigest: z.string(), layers: z.array(Layer) }),
      // Of a version that knew files only.
      z
        .object({ v: z.literal(2), imageDigest: z.string(), layers: z.array(z.string()) })
        .transform((old) => ({ ...old, layers: localLayers(old.layers) })),
      // Of a version whose disks were single files: it is registered anew before anything starts from it.
      z.object({ v: z.literal(1), imageDigest: z.string() }).transform((old) => ({ ...old, layers: localLayers([]) })),
    ]),
  ),
  start: json(StartColumn),
  aliases: json(z.array(z.string())),
});

const SELECT = `SELECT *, (SELECT json_group_array(alias ORDER BY alias) FROM aliases
  WHERE aliases.template_id = templates.template_id) AS aliases FROM templates`;

/** The rows of all templates and the aliases that point at them. */
export class TemplateLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Writes a template and moves its aliases to it, in one step. Aliases that it had and has no more are dropped; the
   * creation time and the counts of an existing one stay.
   */
  put(template: Template): void {
    this.#database.transaction(() => {
      this.#database.run(
        `INSERT INTO templates VALUES (:template_id, :build_id, :cpu_count, :memory_mb, :disk_size_mb,
           :created_at, :updated_at, :last_spawned_at, :spawn_count, :envd_version, :source, :start)
         ON CONFLICT (template_id) DO UPDATE SET build_id = excluded.build_id, cpu_count = excluded.cpu_count,
           memory_mb = excluded.memory_mb, disk_size_mb = excluded.disk_size_mb, updated_at = excluded.updated_at,
           envd_version = excluded.envd_version, source = excluded.source, start = excluded.start`,
        toRow(template),
      );
      this.#database.run('DELETE FROM aliases WHERE template_id = :id', { id: template.templateId });
      for (const alias of template.aliases) {
        this.#database.run('INSERT OR REPLACE INTO aliases (alias, template_id) VALUES (:alias, :id)', {
          alias,
          id: template.templateId,
        });
      }
    });
  }

  get(templateId: string): Template | undefined {
    const row = this.#database.get(`${SELECT} WHERE template_id = :id`, { id: templateId });
    return row === undefined ? undefined : toTemplate(row);
  }

  byAlias(alias: string): Template | undefined {
    const sql = `${SELECT} WHERE template_id = (SELECT template_id FROM aliases WHERE alias = :alias)`;
    const row = this.#database.get(sql, { alias });
    return row === undefined ? undefined : toTemplate(row);
  }

  /** All templates, newest first. */
  list(): readonly Template[] {
    return this.#database.all(`${SELECT} ORDER BY created_at DESC, template_id`).map(toTemplate);
  }

  /** Counts one start. */
  recordSpawn(templateId: string, at: Date): void {
    this.#database.run(
      'UPDATE templates SET spawn_count = spawn_count + 1, last_spawned_at = :at WHERE template_id = :id',
      { id: templateId, at: at.getTime() },
    );
  }

  /** Removes a template with its aliases. @returns whether there was one */
  remove(templateId: string): boolean {
    return this.#database.run('DELETE FROM templates WHERE template_id = :id', { id: templateId }) > 0;
  }
}

function toTemplate(raw: RawRow): Template {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    const id = String(raw.template_id);
    throw new AenvError('ledger_failed', `the ledger's row of template ${id} is damaged`, { cause: parsed.error });
  }
  const row = parsed.data;
  return {
    templateId: row.template_id,
    buildId: row.build_id,
    aliases: row.aliases,
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastSpawnedAt: row.last_spawned_at,
    spawnCount: row.spawn_count,
    envdVersion: row.envd_version,
    source: { imageDigest: row.source.imageDigest, layers: row.source.layers },
    start: row.start,
  };
}

function toRow(template: Template) {
  return {
    template_id: template.templateId,
    build_id: template.buildId,
    cpu_count: template.cpuCount,
    memory_mb: template.memoryMb,
    disk_size_mb: template.diskSizeMb,
    created_at: template.createdAt.getTime(),
    updated_at: template.updatedAt.getTime(),
    last_spawned_at: template.lastSpawnedAt?.getTime() ?? null,
    spawn_count: template.spawnCount,
    envd_version: template.envdVersion,
    source: JSON.stringify({ v: 3, ...template.source }),
    start: JSON.stringify({ v: 1, ...template.start }),
  };
}
