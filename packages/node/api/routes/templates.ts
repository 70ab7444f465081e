import { ListTemplatesQuery, ListTemplatesV2Query, TemplateBuildsQuery } from '@aenv/contracts/api/list-query.ts';
import { Template, TemplateAlias, TemplateWithBuilds } from '@aenv/contracts/api/template.ts';
import { z } from '@hono/zod-openapi';
import { decodePageToken, encodePageToken } from '../../store/page-token.ts';
import type { Template as TemplateRecord } from '../../templates/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentTemplate, presentTemplateWithBuilds } from '../present/template.ts';
import { MAX_PAGE } from '../query/list-sandboxes.ts';

export function templateRoutes({ templates }: ApiParts): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/templates',
      summary: 'List all templates',
      deprecated: true,
      query: ListTemplatesQuery,
      answers: [{ status: 200, description: 'newest first', schema: z.array(Template) }],
      handle: () => ({ status: 200, body: templates.list().map(presentTemplate) }),
    }),
    route({
      method: 'GET',
      path: '/v2/templates',
      summary: 'List templates, page by page',
      query: ListTemplatesV2Query,
      answers: [
        {
          status: 200,
          description: 'one page, newest first',
          schema: z.array(Template),
          headers: { 'X-Next-Token': 'for the next page; absent on the last one' },
        },
      ],
      handle: ({ query }) => {
        const { items, nextToken } = pageOf(templates.list(), query.limit ?? MAX_PAGE, query.nextToken);
        return {
          status: 200,
          body: items.map(presentTemplate),
          headers: nextToken === undefined ? {} : { 'X-Next-Token': nextToken },
        };
      },
    }),
    // Before the next one, which would take the word for an id.
    route({
      method: 'GET',
      path: '/templates/aliases/{alias}',
      summary: 'Find the template behind an alias',
      answers: [{ status: 200, description: 'the template', schema: TemplateAlias }],
      errors: [404],
      handle: ({ param }) => ({
        status: 200,
        body: { templateID: templates.find(param('alias')).templateId, public: false } satisfies TemplateAlias,
      }),
    }),
    route({
      method: 'GET',
      path: '/templates/{templateID}',
      summary: 'Describe a template and its builds',
      query: TemplateBuildsQuery,
      answers: [{ status: 200, description: 'the template', schema: TemplateWithBuilds }],
      errors: [404],
      handle: ({ param }) => ({
        status: 200,
        body: presentTemplateWithBuilds(templates.find(param('templateID')), templates.versions(param('templateID'))),
      }),
    }),
  ];
}

/** A page of a list that is newest first, by creation time and id. */
function pageOf(all: readonly TemplateRecord[], limit: number, token: string | undefined) {
  const sorted = all.toSorted((a, b) => later(a, b.createdAt, b.templateId));
  const cursor = token === undefined || token === '' ? undefined : decodePageToken(token, 'desc');
  const rest = cursor === undefined ? sorted : sorted.filter((item) => later(item, cursor.at, cursor.id) > 0);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  if (rest.length <= limit || last === undefined) return { items };
  return { items, nextToken: encodePageToken({ at: last.createdAt, id: last.templateId }, 'desc') };
}

/** Above 0 when the template comes after that place in the list. */
function later(template: TemplateRecord, at: Date, id: string): number {
  const difference = at.getTime() - template.createdAt.getTime();
  return difference !== 0 ? difference : template.templateId < id ? 1 : template.templateId > id ? -1 : 0;
}
