import { ListSandboxesQuery, ListSandboxesV2Query } from '@aenv/contracts/api/list-query.ts';
import { ListedSandbox } from '@aenv/contracts/api/sandbox.ts';
import { z } from '@hono/zod-openapi';
import type { ListQuery, SandboxView } from '../../sandboxes/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentListed } from '../present/sandbox.ts';
import { listQuery, MAX_PAGE } from '../query/list-sandboxes.ts';
import { metadataFilter } from '../query/metadata-filter.ts';

export function listSandboxesRoutes({ sandboxes }: ApiParts): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/sandboxes',
      summary: 'List all running sandboxes',
      deprecated: true,
      query: ListSandboxesQuery,
      answers: [{ status: 200, description: 'newest first', schema: z.array(ListedSandbox) }],
      handle: ({ query }) => {
        const metadata = metadataFilter(query.metadata);
        const filter: ListQuery = {
          states: ['running'],
          ...(metadata === undefined ? {} : { metadata }),
          order: 'desc',
          limit: MAX_PAGE,
        };
        const all: SandboxView[] = [];
        let nextToken: string | undefined;
        do {
          const page = sandboxes.list(nextToken === undefined ? filter : { ...filter, nextToken });
          all.push(...page.items);
          nextToken = page.nextToken;
        } while (nextToken !== undefined);
        return { status: 200, body: all.map(presentListed) };
      },
    }),
    route({
      method: 'GET',
      path: '/v2/sandboxes',
      summary: 'List sandboxes, page by page',
      query: ListSandboxesV2Query,
      answers: [
        {
          status: 200,
          description: 'one page',
          schema: z.array(ListedSandbox),
          headers: {
            'X-Next-Token': 'for the next page; absent on the last one',
            'X-Total-Running': 'how many running ones match; only where running ones were asked for',
          },
        },
      ],
      handle: ({ query }) => {
        const filter = listQuery(query);
        const page = sandboxes.list(filter);
        return {
          status: 200,
          body: page.items.map(presentListed),
          headers: {
            ...(page.nextToken === undefined ? {} : { 'X-Next-Token': page.nextToken }),
            ...(filter.states.includes('running') ? { 'X-Total-Running': String(page.totalRunning) } : {}),
          },
        };
      },
    }),
  ];
}
