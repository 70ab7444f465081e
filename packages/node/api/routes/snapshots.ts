import { ListSnapshotsQuery, NewSnapshot, Snapshot, SnapshotVerification } from '@aenv/contracts/api/snapshot.ts';
import { z } from '@hono/zod-openapi';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentSnapshot } from '../present/snapshot.ts';
import { MAX_PAGE } from '../query/list-sandboxes.ts';
import { sandboxIdOf } from '../query/sandbox-id.ts';
import { newSnapshotName, snapshotFilter } from '../query/snapshot-name.ts';

/** Snapshots; they are removed through DELETE /templates/{templateID}, as clients of E2B do. */
export function snapshotRoutes({ sandboxes, snapshots }: Pick<ApiParts, 'sandboxes' | 'snapshots'>): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/snapshots',
      summary: 'Keep a running sandbox as a snapshot; it goes on',
      body: NewSnapshot,
      bodyOptional: true,
      answers: [{ status: 201, description: 'all of it is on the disk', schema: Snapshot }],
      errors: [404, 409, 507],
      handle: async ({ param, body }) => {
        const id = sandboxIdOf(param('sandboxID'));
        const name = body.name == null ? undefined : newSnapshotName(body.name);
        return { status: 201, body: presentSnapshot(await sandboxes.snapshot(id, name)) };
      },
    }),
    route({
      method: 'GET',
      path: '/snapshots',
      summary: 'List snapshots, page by page',
      query: ListSnapshotsQuery,
      answers: [
        {
          status: 200,
          description: 'one page, newest first',
          schema: z.array(Snapshot),
          headers: { 'X-Next-Token': 'for the next page; absent on the last one' },
        },
      ],
      handle: ({ query: { sandboxID, name, limit = MAX_PAGE, nextToken } }) => {
        const filter = name ? snapshotFilter(name) : {};
        if (filter === undefined) return { status: 200, body: [] };
        const page = snapshots.list({
          ...filter,
          ...(sandboxID ? { sandboxId: sandboxIdOf(sandboxID) } : {}),
          limit,
          ...(nextToken ? { nextToken } : {}),
        });
        return {
          status: 200,
          body: page.items.map(presentSnapshot),
          headers: page.nextToken === undefined ? {} : { 'X-Next-Token': page.nextToken },
        };
      },
    }),
    route({
      method: 'GET',
      path: '/snapshots/{snapshotID}',
      summary: 'Describe a snapshot',
      answers: [{ status: 200, description: 'the snapshot', schema: Snapshot }],
      errors: [404],
      handle: ({ param }) => ({ status: 200, body: presentSnapshot(snapshots.get(param('snapshotID'))) }),
    }),
    route({
      method: 'POST',
      path: '/snapshots/{snapshotID}/verify',
      summary: 'Read every byte of a snapshot and compare it with what was written',
      answers: [{ status: 200, description: 'what was read, and what is wrong', schema: SnapshotVerification }],
      errors: [404],
      handle: async ({ param }) => {
        const { checkedBytes, problems } = await snapshots.verify(param('snapshotID'));
        return { status: 200, body: { checkedBytes, problems: [...problems] } satisfies SnapshotVerification };
      },
    }),
  ];
}
