import { ErrorAnswer } from '@aenv/contracts/api/error.ts';
import { OpenAPIHono, z } from '@hono/zod-openapi';
import type { AnswerDoc, Route } from './http/route.ts';

/** The OpenAPI 3.1 document of the routes. */
export function openApiDocument(routes: readonly Route[], version: string): object {
  const app = new OpenAPIHono();
  app.openAPIRegistry.registerComponent('securitySchemes', 'ApiKey', {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
  });
  for (const route of routes) {
    if (!route.hidden) register(app, route);
  }
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'AgentENV',
      version,
      description: 'Isolated microVM sandboxes for AI agents, with the API of E2B.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
  });
}

function register(app: OpenAPIHono, route: Route): void {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
  const errors = new Set([...(route.errors ?? []), ...(route.open ? [] : [400, 401, 500])]);
  app.openAPIRegistry.registerPath({
    method: route.method.toLowerCase() as Lowercase<Route['method']>,
    path: route.path,
    summary: route.summary,
    ...(route.deprecated ? { deprecated: true } : {}),
    security: route.open ? [] : [{ ApiKey: [] }],
    request: {
      ...(names.length === 0 ? {} : { params: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) }),
      ...(route.query instanceof z.ZodObject ? { query: route.query } : {}),
      ...(route.body === undefined
        ? {}
        : { body: { required: !route.bodyOptional, content: { 'application/json': { schema: route.body } } } }),
    },
    responses: {
      ...Object.fromEntries(route.answers.map((answer) => [answer.status, describe(answer)])),
      ...Object.fromEntries(
        [...errors]
          .sort()
          .map((status) => [
            status,
            { description: 'error', content: { 'application/json': { schema: ErrorAnswer } } },
          ]),
      ),
    },
  });
}

function describe(answer: AnswerDoc) {
  const headers = Object.entries(answer.headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' as const } },
  ]);
  return {
    description: answer.description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(answer.schema === undefined ? {} : { content: { 'application/json': { schema: answer.schema } } }),
  };
}
