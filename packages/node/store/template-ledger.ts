import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { Template, TemplateTag } from '../templates/contract.ts';
import { localLayers } from '../templates/layers.ts';
import { DEFAULT_TAG } from '../templates/reference.ts';
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

const TagRow = z.object({ tag: z.string(), build_id: z.string(), assigned_at: time });

const VERSION = `templates.*, versions.*, (SELECT json_group_array(alias ORDER BY alias) FROM aliases
  WHERE aliases.template_id = templates.template_id) AS aliases
  FROM templates JOIN template_versions AS versions USING (template_id)`;

/** The version that a template is shown by: that of the tag `default`, or else the one that was tagged last. */
const SHOWN = `SELECT ${VERSION} WHERE build_id = (SELECT build_id FROM template_tags
  WHERE template_tags.template_id = templates.template_id ORDER BY tag <> '${DEFAULT_TAG}', assigned_at DESC, tag LIMIT 1)`;

/** The rows of all templates, their versions, the tags that point at these, and the aliases that point at them. */
export class TemplateLedger {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Writes a version of a template and moves its aliases to it and tags to the version, in one step. Aliases that it had
   * and has no more are dropped; the creation time and the counts of an existing one stay. Versions without a tag go.
   */
  put(template: Template, tags: readonly string[] = [DEFAULT_TAG]): void {
    this.#database.transaction(() => {
      const { templateId: id, buildId, createdAt, updatedAt, lastSpawnedAt, spawnCount } = template;
      this.#database.run(
        `INSERT INTO templates (template_id, created_at, updated_at, last_spawned_at, spawn_count)
           VALUES (:id, :created, :updated, :spawned, :count)
         ON CONFLICT (template_id) DO UPDATE SET updated_at = excluded.updated_at`,
        {
          ...{ id, created: createdAt.getTime(), updated: updatedAt.getTime() },
          ...{ spawned: lastSpawnedAt?.getTime() ?? null, count: spawnCount },
        },
      );
      this.#database.run(
        `INSERT INTO template_versions VALUES (:template_id, :build_id, :cpu_count, :memory_mb, :disk_size_mb,
           :built_at, :envd_version, :source, :start)
         ON CONFLICT (template_id, build_id) DO UPDATE SET cpu_count = excluded.cpu_count, memory_mb = excluded.memory_mb,
           disk_size_mb = excluded.disk_size_mb, envd_version = excluded.envd_version, source = excluded.source,
           start = excluded.start`,
        toVersion(template),
      );
      this.assignTags(id, buildId, tags, updatedAt);
      this.#database.run('DELETE FROM aliases WHERE template_id = :id', { id });
      for (const alias of template.aliases) {
        this.#database.run('INSERT OR REPLACE INTO aliases (alias, template_id) VALUES (:alias, :id)', { alias, id });
      }
    });
  }

  get(templateId: string): Template | undefined {
    const row = this.#database.get(`${SHOWN} AND template_id = :id`, { id: templateId });
    return row === undefined ? undefined : toTemplate(row);
  }

  byAlias(alias: string): Template | undefined {
    const row = this.#database.get('SELECT template_id FROM aliases WHERE alias = :alias', { alias });
    return row === undefined ? undefined : this.get(String(row.template_id));
  }

  /** The version that a tag points at. */
  tagged(templateId: string, tag: string): Template | undefined {
    const sql = `SELECT ${VERSION} WHERE template_id = :id AND build_id =
      (SELECT build_id FROM template_tags WHERE template_id = :id AND tag = :tag)`;
    const row = this.#database.get(sql, { id: templateId, tag });
    return row === undefined ? undefined : toTemplate(row);
  }

  /** All templates, newest first. */
  list(): readonly Template[] {
    return this.#database.all(`${SHOWN} ORDER BY created_at DESC, template_id`).map(toTemplate);
  }

  /** All versions of all templates, or of one, newest first; `updatedAt` is when each was built. */
  versions(templateId?: string): readonly Template[] {
    const where = templateId === undefined ? '' : 'WHERE template_id = :id';
    const values = templateId === undefined ? {} : { id: templateId };
    const sql = `SELECT ${VERSION} ${where} ORDER BY built_at DESC, build_id`;
    return this.#database.all(sql, values).map((row) => toTemplate({ ...row, updated_at: row.built_at }));
  }

  tags(templateId: string): readonly TemplateTag[] {
    const sql = 'SELECT tag, build_id, assigned_at FROM template_tags WHERE template_id = :id ORDER BY tag';
    return this.#database.all(sql, { id: templateId }).map((row) => {
      const { tag, build_id: buildId, assigned_at: createdAt } = TagRow.parse(row);
      return { tag, buildId, createdAt };
    });
  }

  /** Has tags point at a version; one that loses its last tag goes. */
  assignTags(templateId: string, buildId: string, tags: readonly string[], at: Date): void {
    this.#database.transaction(() => {
      for (const tag of tags) {
        this.#database.run(
          `INSERT INTO template_tags VALUES (:templateId, :tag, :buildId, :at)
             ON CONFLICT (template_id, tag) DO UPDATE SET build_id = excluded.build_id, assigned_at = excluded.assigned_at
             WHERE build_id <> excluded.build_id`,
          { templateId, tag, buildId, at: at.getTime() },
        );
      }
      this.#removeUntagged(templateId);
    });
  }

  /** Removes tags, and the versions that have none left. @returns how many there were */
  removeTags(templateId: string, tags: readonly string[]): number {
    return this.#database.transaction(() => {
      const sql = 'DELETE FROM template_tags WHERE template_id = :templateId AND tag = :tag';
      const removed = tags.map((tag) => this.#database.run(sql, { templateId, tag }));
      this.#removeUntagged(templateId);
      return removed.reduce((sum, count) => sum + count, 0);
    });
  }

  /** Counts one start. */
  recordSpawn(templateId: string, at: Date): void {
    this.#database.run(
      'UPDATE templates SET spawn_count = spawn_count + 1, last_spawned_at = :at WHERE template_id = :id',
      { id: templateId, at: at.getTime() },
    );
  }

  /** Removes a template with its versions, tags and aliases. @returns whether there was one */
  remove(templateId: string): boolean {
    return this.#database.run('DELETE FROM templates WHERE template_id = :id', { id: templateId }) > 0;
  }

  #removeUntagged(templateId: string): void {
    this.#database.run(
      `DELETE FROM template_versions WHERE template_id = :templateId
         AND build_id NOT IN (SELECT build_id FROM template_tags WHERE template_id = :templateId)`,
      { templateId },
    );
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

function toVersion(template: Template) {
  return {
    build_id: template.buildId,
    template_id: template.templateId,
    cpu_count: template.cpuCount,
    memory_mb: template.memoryMb,
    disk_size_mb: template.diskSizeMb,
    built_at: template.updatedAt.getTime(),
    envd_version: template.envdVersion,
    source: JSON.stringify({ v: 3, ...template.source }),
    start: JSON.stringify({ v: 1, ...template.start }),
  };
}
