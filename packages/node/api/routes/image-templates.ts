import {
  NewTemplate,
  RequestedTemplate,
  TemplateBuildLogs,
  TemplateBuildLogsQuery,
  TemplateBuildStart,
} from '@aenv/contracts/api/image-template.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { resolveOrigin } from '../../sandboxes/origin/origin.ts';
import type { ReadyWish } from '../../templates/pull/contract.ts';
import { DEFAULT_TAG, parseTemplateReference } from '../../templates/reference.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { NAMESPACE } from '../present/template.ts';
import { sizesOf } from '../query/template-sizes.ts';

/** Entries of a build's log in one answer, and what is kept of it. */
const MAX_ENTRIES = 100;
const ALL_ENTRIES = 100_000;

/** Templates from images: order, build, logs, removal. */
export function imageTemplateRoutes({
  images,
  templates,
  snapshots,
}: Pick<ApiParts, 'images' | 'templates' | 'snapshots'>): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/v3/templates',
      summary: 'Order a template; it is there when its build has succeeded',
      body: NewTemplate,
      answers: [{ status: 202, description: 'ids to start the build with', schema: RequestedTemplate }],
      handle: ({ body }) => {
        const alias = aliasOf(body.name ?? body.alias ?? '');
        const { templateId, buildId } = images.create({ alias, ...sizesOf(body) });
        return {
          status: 202,
          body: {
            ...{ templateID: templateId, buildID: buildId, public: false },
            ...{ aliases: [alias], names: [`${NAMESPACE}/${alias}`], tags: [DEFAULT_TAG] },
          } satisfies RequestedTemplate,
        };
      },
    }),
    route({
      method: 'POST',
      path: '/v2/templates/{templateID}/builds/{buildID}',
      summary: 'Build a template that was ordered, from an image of a registry',
      body: TemplateBuildStart,
      answers: [{ status: 202, description: 'the build is under way' }],
      errors: [404, 409, 503],
      handle: ({ param, body }) => {
        const { fromImage: image, fromImageRegistry: registry, timeoutSeconds } = body;
        const ids = { templateId: param('templateID'), buildId: param('buildID') };
        images.start(ids, {
          image,
          startCmd: body.startCmd ?? undefined,
          ready: readyOf(body),
          ...(registry == null
            ? {}
            : { credentials: { kind: 'password', username: registry.username, password: registry.password } }),
          ...(timeoutSeconds == null ? {} : { timeoutMs: timeoutSeconds * 1000 }),
        });
        // Clients of E2B take an answer without a length for JSON.
        return { status: 202, headers: { 'content-length': '0' } };
      },
    }),
    route({
      method: 'GET',
      path: '/templates/{templateID}/builds/{buildID}/logs',
      summary: 'Read the log of a build',
      query: TemplateBuildLogsQuery,
      answers: [{ status: 200, description: 'entries in the order asked for', schema: TemplateBuildLogs }],
      errors: [404],
      handle: ({ param, query: { cursor, limit = MAX_ENTRIES, direction, level } }) => {
        const all = { offset: 0, limit: ALL_ENTRIES, level };
        const { entries } = images.state(param('templateID'), param('buildID'), all);
        const backward = direction === 'backward';
        const wanted = entries.filter(({ timestamp }) => {
          return cursor === undefined || (backward ? timestamp.getTime() <= cursor : timestamp.getTime() >= cursor);
        });
        const page = (backward ? wanted.toReversed() : wanted).slice(0, limit);
        const logs = page.map((entry) => ({ ...entry, timestamp: entry.timestamp.toISOString() }));
        return { status: 200, body: { logs } satisfies TemplateBuildLogs };
      },
    }),
    route({
      method: 'DELETE',
      path: '/templates/{templateID}',
      summary: 'Remove a template or a snapshot that no sandbox uses',
      answers: [{ status: 204, description: 'it is removed' }],
      errors: [404, 409],
      handle: async ({ param }) => {
        const origin = resolveOrigin({ templates, snapshots }, param('templateID'));
        if (origin.kind === 'template') images.remove(origin.template.templateId);
        else await snapshots.remove(param('templateID'));
        return { status: 204 };
      },
    }),
  ];
}

function readyOf({ readyCmd, readyProbe }: TemplateBuildStart): ReadyWish | undefined {
  if (readyProbe != null) return { kind: 'http', port: readyProbe.port, path: readyProbe.path ?? '/' };
  return readyCmd == null ? undefined : { kind: 'command', cmd: readyCmd };
}

/** @throws AenvError `invalid_request`, `unsupported_field` */
function aliasOf(text: string): string {
  const refuse = (why: string) => new AenvError('invalid_request', `body.name: ${why}`);
  const { namespace = NAMESPACE, name, tag } = parseTemplateReference(text);
  if (namespace !== NAMESPACE) throw refuse(`the only namespace of this node is '${NAMESPACE}'`);
  if (tag !== DEFAULT_TAG) throw new AenvError('unsupported_field', 'body.name: not supported by this server: tags');
  // Ids are found before aliases.
  if (/^[a-z0-9]{20}$/.test(name)) throw refuse('it looks like the id of a template');
  return name;
}
