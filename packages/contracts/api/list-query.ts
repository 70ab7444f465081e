import { z } from '@hono/zod-openapi';

/** Parameters of every list that comes in pages. */
export const page = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'must be a whole number from 1 to 100')
    .transform(Number)
    .pipe(z.int().min(1, 'must be from 1 to 100').max(100, 'must be from 1 to 100'))
    .optional()
    .openapi({ type: 'integer', description: '1 to 100; 100 when absent' }),
  nextToken: z.string().optional().openapi({ description: 'X-Next-Token of the page before' }),
};

const metadata = z.string().optional().openapi({
  description: 'pairs that must all match, as a form string whose names and values are URI-encoded once more',
  example: 'user%3Du1',
});

/** Query of GET /sandboxes. */
export const ListSandboxesQuery = z.strictObject({ metadata });

/** Query of GET /v2/sandboxes, as strings; `state` is one comma list. */
export const ListSandboxesV2Query = z.strictObject({
  metadata,
  state: z.string().optional().openapi({ description: 'comma list of running, paused; both when absent' }),
  startedAfter: z.string().optional().openapi({ format: 'date-time', description: 'started at this time or later' }),
  template: z.string().optional().openapi({ description: 'id or alias, without a tag' }),
  order: z.enum(['asc', 'desc']).optional().openapi({ description: 'by start time; desc when absent' }),
  ...page,
});

/** Query of GET /templates. */
export const ListTemplatesQuery = z.strictObject({
  teamID: z.string().optional().openapi({ description: 'taken for old clients; there is one team' }),
});

/** Query of GET /v2/templates. */
export const ListTemplatesV2Query = z.strictObject({ ...ListTemplatesQuery.shape, ...page });

/** Query of GET /templates/{templateID}, which pages its builds. */
export const TemplateBuildsQuery = z.strictObject(page);
