import type { ListQuery } from '../sandboxes/contract.ts';
import type { Database } from './database.ts';
import { decodePageToken, encodePageToken } from './page-token.ts';
import type { SandboxRecord } from './sandbox-record.ts';
import { toSandboxRecord } from './sandbox-row.ts';

export interface SandboxPage {
  readonly items: readonly SandboxRecord[];
  readonly nextToken?: string;
  /** all that match and are not paused, on every page */
  readonly totalRunning: number;
}

/**
 * One page by key (start time, id), so that rows which come or go between two pages neither repeat nor hide others.
 * One row more than asked for tells whether there is a next page.
 */
export function listSandboxes(database: Database, query: ListQuery): SandboxPage {
  const conditions = [`state NOT IN ('ended', 'lost')`];
  if (!query.states.includes('paused')) conditions.push(`state <> 'paused'`);
  if (!query.states.includes('running')) conditions.push(`state = 'paused'`);
  const parameters: Record<string, string | number> = {};
  if (query.startedAfter !== undefined) {
    conditions.push('started_at >= :started_after');
    parameters.started_after = query.startedAfter.getTime();
  }
  if (query.template !== undefined) {
    conditions.push(`template_id IN (SELECT :template UNION SELECT template_id FROM aliases WHERE alias = :template
      UNION SELECT template_id FROM snapshots WHERE alias = :template)`);
    parameters.template = query.template;
  }
  if (query.metadata !== undefined && Object.keys(query.metadata).length > 0) {
    // No wanted pair may be missing from the sandbox's own.
    conditions.push(`NOT EXISTS (
      SELECT 1 FROM json_each(:metadata) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_each(sandboxes.metadata) AS own WHERE own.key = wanted.key AND own.value = wanted.value))`);
    parameters.metadata = JSON.stringify(query.metadata);
  }
  const filter = conditions.join(' AND ');
  const total = database.get(`SELECT count(*) AS n FROM sandboxes WHERE ${filter} AND state <> 'paused'`, parameters);

  const direction = query.order === 'asc' ? 'ASC' : 'DESC';
  let page = filter;
  if (query.nextToken !== undefined) {
    const cursor = decodePageToken(query.nextToken, query.order);
    page += ` AND (started_at, sandbox_id) ${query.order === 'asc' ? '>' : '<'} (:cursor_at, :cursor_id)`;
    parameters.cursor_at = cursor.at.getTime();
    parameters.cursor_id = cursor.id;
  }
  const rows = database.all(
    `SELECT * FROM sandboxes WHERE ${page} ORDER BY started_at ${direction}, sandbox_id ${direction} LIMIT :limit`,
    { ...parameters, limit: query.limit + 1 },
  );
  const items = rows.slice(0, query.limit).map(toSandboxRecord);
  const last = items.at(-1);
  return {
    items,
    ...(rows.length > query.limit && last !== undefined
      ? { nextToken: encodePageToken({ at: last.startedAt, id: last.sandboxId }, query.order) }
      : {}),
    totalRunning: Number(total?.n ?? 0),
  };
}
