import { z } from '@hono/zod-openapi';
import { page } from './list-query.ts';

/** Body of POST /sandboxes/{sandboxID}/snapshots; may be absent. */
export const NewSnapshot = z
  .strictObject({
    name: z.string().nullish().openapi({
      description: 'name, namespace/name or namespace/name:tag; one that another snapshot has moves to the new one',
      example: 'default/ready:v1',
    }),
  })
  .openapi('NewSnapshot');

export const Snapshot = z
  .object({
    snapshotID: z.string().openapi({
      description: 'namespace/name:tag, or the id with the tag `default`; a `templateID` for new sandboxes',
      example: 'default/ready:v1',
    }),
    names: z.array(z.string()),
    templateID: z.string().openapi({ description: 'what sandboxes that start from it have as their template' }),
    sandboxID: z.string().openapi({ description: 'that it was taken of' }),
    createdAt: z.string().openapi({ format: 'date-time' }),
    cpuCount: z.int(),
    memoryMB: z.int(),
    diskSizeMB: z.int(),
    envdVersion: z.string(),
  })
  .openapi('Snapshot');
export type Snapshot = z.output<typeof Snapshot>;

/** Query of GET /snapshots. */
export const ListSnapshotsQuery = z.strictObject({
  sandboxID: z.string().optional().openapi({ description: 'those that were taken of this sandbox' }),
  name: z.string().optional().openapi({
    description: 'id, name or namespace/name, with a tag or with any; an unknown one matches nothing',
  }),
  ...page,
});

/** Answer of POST /snapshots/{snapshotID}/verify. */
export const SnapshotVerification = z
  .object({
    checkedBytes: z.int(),
    problems: z
      .array(z.object({ artefact: z.string(), path: z.string(), message: z.string() }))
      .openapi({ description: 'empty: all of it is as it was written' }),
  })
  .openapi('SnapshotVerification');
export type SnapshotVerification = z.output<typeof SnapshotVerification>;
