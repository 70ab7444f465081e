import {
  SandboxesMetricsQuery,
  type SandboxesWithMetrics,
  SandboxesWithMetrics as SandboxesWithMetricsSchema,
  SandboxLogs,
  SandboxLogsQuery,
  SandboxLogsV2,
  SandboxLogsV2Query,
  SandboxMetric,
  SandboxMetricsQuery,
} from '@aenv/contracts/api/observation.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from '@hono/zod-openapi';
import type { LogQuery } from '../../sandboxes/observe/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentEntry, presentLine, presentSample } from '../present/observation.ts';
import { sandboxIdOf } from '../query/sandbox-id.ts';

const MAX_LOGS = 1000;

/** Load and logs of sandboxes. `/sandboxes/metrics` has to stand before `/sandboxes/{sandboxID}`. */
export function observationRoutes({ sandboxes, observations }: ApiParts): readonly Route[] {
  const logs = (text: string, query: LogQuery) => {
    const sandboxId = sandboxIdOf(text);
    const found = observations.logs(sandboxId, query);
    if (found !== undefined) return found;
    // Throws for those that are not there.
    sandboxes.get(sandboxId);
    return [];
  };
  return [
    route({
      method: 'GET',
      path: '/sandboxes/metrics',
      summary: 'The last metrics of several sandboxes',
      query: SandboxesMetricsQuery,
      answers: [
        { status: 200, description: 'by id; one that does not run is left out', schema: SandboxesWithMetricsSchema },
      ],
      handle: ({ query }) => {
        const found: SandboxesWithMetrics['sandboxes'] = {};
        for (const text of query.sandbox_ids) {
          const sandboxId = sandboxIdOf(text);
          const sample = observations.latest(sandboxId);
          if (sample !== undefined) found[sandboxId] = presentSample(sample);
        }
        return { status: 200, body: { sandboxes: found } satisfies SandboxesWithMetrics };
      },
    }),
    route({
      method: 'GET',
      path: '/sandboxes/{sandboxID}/metrics',
      summary: 'The metrics of a sandbox over time',
      query: SandboxMetricsQuery,
      answers: [{ status: 200, description: 'oldest first', schema: z.array(SandboxMetric) }],
      errors: [404],
      handle: ({ param, query: { start, end } }) => {
        if (start !== undefined && end !== undefined && start > end) {
          throw new AenvError('invalid_request', 'query.start: must not be after query.end');
        }
        const { sandboxId } = sandboxes.get(sandboxIdOf(param('sandboxID')));
        const from = start === undefined ? undefined : start * 1000;
        // All of the last second belongs to it.
        const to = end === undefined ? undefined : end * 1000 + 999;
        return { status: 200, body: (observations.samples(sandboxId, from, to) ?? []).map(presentSample) };
      },
    }),
    route({
      method: 'GET',
      path: '/sandboxes/{sandboxID}/logs',
      summary: 'The log of a sandbox',
      deprecated: true,
      query: SandboxLogsQuery,
      answers: [{ status: 200, description: 'oldest first, in two forms', schema: SandboxLogs }],
      errors: [404],
      handle: ({ param, query: { start, limit = MAX_LOGS } }) => {
        const cursor = start === undefined ? {} : { cursor: start };
        const found = logs(param('sandboxID'), { direction: 'forward', limit, ...cursor });
        return { status: 200, body: { logs: found.map(presentLine), logEntries: found.map(presentEntry) } };
      },
    }),
    route({
      method: 'GET',
      path: '/v2/sandboxes/{sandboxID}/logs',
      summary: 'The log of a sandbox, filtered and in either direction',
      query: SandboxLogsV2Query,
      answers: [{ status: 200, description: 'in the order asked for', schema: SandboxLogsV2 }],
      errors: [404],
      handle: ({ param, query: { direction = 'forward', limit = MAX_LOGS, ...rest } }) => {
        const found = logs(param('sandboxID'), { direction, limit, ...defined(rest) });
        return { status: 200, body: { logs: found.map(presentEntry) } };
      },
    }),
  ];
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without the members that are undefined. */
function defined<T extends object>(value: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Partial<Defined<T>>;
}
