import {
  AssignedTags,
  NewTemplateTags,
  OldTemplateTags,
  TemplateChange,
  TemplateNames,
  TemplateTag,
} from '@aenv/contracts/api/image-template.ts';
import { z } from '@hono/zod-openapi';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentTemplate } from '../present/template.ts';

/** Names of versions of templates, and what else can be changed of one. */
export function templateTagRoutes({ templates }: Pick<ApiParts, 'templates'>): readonly Route[] {
  const namesOf = (reference: string) => presentTemplate(templates.find(reference)).names;
  return [
    route({
      method: 'POST',
      path: '/templates/tags',
      summary: 'Have tags point at a version of a template',
      body: NewTemplateTags,
      answers: [{ status: 201, description: 'the version, and its new tags', schema: AssignedTags }],
      errors: [404],
      handle: ({ body }) => {
        const { buildId, tags } = templates.assignTags(body.target, body.tags);
        return { status: 201, body: { buildID: buildId, tags: [...tags] } };
      },
    }),
    route({
      method: 'DELETE',
      path: '/templates/tags',
      summary: 'Remove tags of a template, with the versions that have none left',
      body: OldTemplateTags,
      answers: [{ status: 204, description: 'they are removed' }],
      errors: [404],
      handle: ({ body }) => {
        templates.removeTags(body.name, body.tags);
        return { status: 204 };
      },
    }),
    route({
      method: 'GET',
      path: '/templates/{templateID}/tags',
      summary: 'List the tags of a template',
      answers: [{ status: 200, description: 'by name', schema: z.array(TemplateTag) }],
      errors: [404],
      handle: ({ param }) => ({
        status: 200,
        body: templates.tags(param('templateID')).map(({ tag, buildId, createdAt }) => {
          return { tag, buildID: buildId, createdAt: createdAt.toISOString() } satisfies TemplateTag;
        }),
      }),
    }),
    route({
      method: 'PATCH',
      path: '/templates/{templateID}',
      summary: 'Change a template, as older clients do',
      deprecated: true,
      body: TemplateChange,
      answers: [{ status: 200, description: 'it is as asked for', schema: z.object({}) }],
      errors: [404],
      handle: ({ param }) => {
        templates.find(param('templateID'));
        return { status: 200, body: {} };
      },
    }),
    route({
      method: 'PATCH',
      path: '/v2/templates/{templateID}',
      summary: 'Change a template',
      body: TemplateChange,
      answers: [{ status: 200, description: 'its names', schema: TemplateNames }],
      errors: [404],
      handle: ({ param }) => ({ status: 200, body: { names: namesOf(param('templateID')) } }),
    }),
  ];
}
