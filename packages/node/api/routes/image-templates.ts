import {
  NewTemplate,
  RequestedTemplate,
  TemplateBuildLogs,
  TemplateBuildLogsQuery,
  TemplateBuildStart,
} from '@aenv/contracts/api/image-template.ts';
import { Template } from '@aenv/contracts/api/template.ts';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { resolveOrigin } from '../../sandboxes/origin/origin.ts';
import type { ReadyWish } from '../../templates/pull/contract.ts';
import { DEFAULT_TAG, parseTag, parseTemplateReference } from '../../templates/reference.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { NAMESPACE } from '../present/template.ts';
import { sizesOf } from '../query/template-sizes.ts';

/** Entries of a build's log in one answer, and what is kept of it. */
const MAX_ENTRIES = 100;
const ALL_ENTRIES = 100_000;
/** of an image that does not bring a size of its own */
const DEFAULT_DISK_MB = 10 * 1024;

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
        const { alias, tags } = nameOf(body);
        const { templateId, buildId } = images.create({ alias, tags, ...sizesOf(body) });
        return {
          status: 202,
          body: {
            ...{ templateID: templateId, buildID: buildId, public: false },
            ...{ aliases: [alias], names: [`${NAMESPACE}/${alias}`], tags: [...tags] },
          } satisfies RequestedTemplate,
        };
      },
    }),
    route({
      method: 'POST',
      path: '/v2/templates',
      summary: 'Order a template, as older clients do',
      deprecated: true,
      body: NewTemplate,
      answers: [{ status: 202, description: 'the template as it will be', schema: Template }],
      handle: ({ body }) => {
        const { alias, tags } = nameOf(body);
        const sizes = sizesOf(body);
        const { templateId, buildId } = images.create({ alias, tags, ...sizes });
        const now = new Date().toISOString();
        return {
          status: 202,
          body: {
            ...{ templateID: templateId, buildID: buildId, public: false },
            ...{
              aliases: [alias],
              names: [`${NAMESPACE}/${alias}`],
              cpuCount: sizes.cpuCount,
              memoryMB: sizes.memoryMb,
            },
            ...{ diskSizeMB: sizes.diskSizeMb ?? DEFAULT_DISK_MB, createdAt: now, updatedAt: now, createdBy: null },
            ...{ lastSpawnedAt: null, spawnCount: 0, buildCount: 0, buildStatus: 'waiting', envdVersion: ENVD_VERSION },
          } satisfies Template,
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
        const reference = param('templateID');
        // A build that failed has left no template, and yet its id can be removed.
        if (images.forget(reference)) return { status: 204 };
        const origin = resolveOrigin({ templates: { resolve: (text) => templates.find(text) }, snapshots }, reference);
        if (origin.kind === 'snapshot') await snapshots.remove(reference);
        else {
          refuseVersion(reference);
          images.remove(origin.template.templateId);
        }
        return { status: 204 };
      },
    }),
  ];
}

function readyOf({ readyCmd, readyProbe }: TemplateBuildStart): ReadyWish | undefined {
  if (readyProbe != null) return { kind: 'http', port: readyProbe.port, path: readyProbe.path ?? '/' };
  return readyCmd == null ? undefined : { kind: 'command', cmd: readyCmd };
}

/** Alias and tags of a new version. @throws AenvError `invalid_request` */
function nameOf(body: NewTemplate): { readonly alias: string; readonly tags: readonly string[] } {
  const refuse = (why: string) => new AenvError('invalid_request', `body.name: ${why}`);
  const { namespace = NAMESPACE, name, tag, isTagged } = parseTemplateReference(body.name ?? body.alias ?? '');
  if (namespace !== NAMESPACE) throw refuse(`the only namespace of this node is '${NAMESPACE}'`);
  // Ids are found before aliases.
  if (/^[a-z0-9]{20}$/.test(name)) throw refuse('it looks like the id of a template');
  const tags = new Set([...(isTagged ? [tag] : []), ...(body.tags ?? []).map(parseTag)]);
  return { alias: name, tags: tags.size === 0 ? [DEFAULT_TAG] : [...tags] };
}

/** A template is removed as a whole. @throws AenvError `invalid_request` */
function refuseVersion(reference: string): void {
  if (parseTemplateReference(reference).tag === DEFAULT_TAG) return;
  throw new AenvError('invalid_request', `'${reference}' is one version of a template`, {
    remediation: 'Remove its tag with DELETE /templates/tags, or all of the template by its name without a tag.',
  });
}
