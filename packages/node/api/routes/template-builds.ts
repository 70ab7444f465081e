import {
  TemplateBuildInfo,
  TemplateBuildStarted,
  TemplateBuildStatusQuery,
} from '@aenv/contracts/api/template-build.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';

/** At most so many log entries in one answer. */
const MAX_ENTRIES = 100;

export function templateBuildRoutes({ builds }: Pick<ApiParts, 'builds'>): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/aenv/templates/{name}/builds',
      summary: 'Build a template that the product brings, and register it under its alias',
      answers: [
        {
          status: 202,
          description: 'the build, under way; where it was built from the same before, nothing changes',
          schema: TemplateBuildStarted,
        },
      ],
      errors: [404],
      handle: ({ param }) => {
        const { templateId, buildId } = builds.startBuiltin(param('name'));
        return { status: 202, body: { templateID: templateId, buildID: buildId } satisfies TemplateBuildStarted };
      },
    }),
    route({
      method: 'GET',
      path: '/templates/{templateID}/builds/{buildID}/status',
      summary: 'Tell how far the build of a template is',
      query: TemplateBuildStatusQuery,
      answers: [
        { status: 200, description: 'the state, with log entries from an offset on', schema: TemplateBuildInfo },
      ],
      errors: [404],
      handle: ({ param, query }) => {
        const { logsOffset: offset = 0, limit = MAX_ENTRIES, level } = query;
        const state = builds.state(param('templateID'), param('buildID'), { offset, limit, level });
        return {
          status: 200,
          body: {
            templateID: state.templateId,
            buildID: state.buildId,
            status: state.status,
            logs: state.entries.map(({ message }) => message),
            logEntries: state.entries.map((entry) => ({ ...entry, timestamp: entry.timestamp.toISOString() })),
            ...(state.reason === undefined ? {} : { reason: { message: state.reason } }),
          } satisfies TemplateBuildInfo,
        };
      },
    }),
  ];
}
