import type { ListPage, ListQuery, SandboxView } from '../contract.ts';
import { decodeCursor, encodeCursor } from './page-token.ts';

/**
 * One page of the sandboxes that match, ordered by start time and then by id.
 *
 * @param templateId what `query.template` stands for; undefined when no such template exists
 * @throws AenvError `invalid_request` for a bad token
 */
export function listPage(views: Iterable<SandboxView>, query: ListQuery, templateId: string | undefined): ListPage {
  const cursor = query.nextToken === undefined ? undefined : decodeCursor(query.nextToken, query.order);
  // All sandboxes count as running: E2B has only one other state, and nothing pauses.
  const wanted = query.states.includes('running') ? [...views] : [];
  const matching = wanted.filter((view) => matches(view, query, templateId));

  const direction = query.order === 'asc' ? 1 : -1;
  const compare = (a: Key, b: Key) => direction * (a.startedAt - b.startedAt || (a.sandboxId < b.sandboxId ? -1 : 1));
  const sorted = matching.map((view) => ({ ...keyOf(view), view })).sort(compare);
  const rest =
    cursor === undefined ? sorted : sorted.filter((item) => !isSame(item, cursor) && compare(item, cursor) > 0);
  const page = rest.slice(0, query.limit);
  const last = page.at(-1);
  return {
    items: page.map((item) => item.view),
    totalRunning: matching.length,
    ...(last !== undefined && rest.length > page.length
      ? { nextToken: encodeCursor({ startedAt: last.startedAt, sandboxId: last.sandboxId, order: query.order }) }
      : {}),
  };
}

interface Key {
  readonly startedAt: number;
  readonly sandboxId: string;
}

const keyOf = (view: SandboxView): Key => ({ startedAt: view.startedAt.getTime(), sandboxId: view.sandboxId });
const isSame = (a: Key, b: Key) => a.startedAt === b.startedAt && a.sandboxId === b.sandboxId;

function matches(view: SandboxView, query: ListQuery, templateId: string | undefined): boolean {
  if (query.template !== undefined && view.templateId !== templateId) return false;
  if (query.startedAfter !== undefined && view.startedAt < query.startedAfter) return false;
  for (const [key, value] of Object.entries(query.metadata ?? {})) {
    if (!Object.hasOwn(view.metadata, key) || view.metadata[key] !== value) return false;
  }
  return true;
}
