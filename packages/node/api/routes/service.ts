import { Team } from '@aenv/contracts/api/team.ts';
import { z } from '@hono/zod-openapi';
import { authenticate } from '../../auth/authenticate.ts';
import { isLoopback } from '../http/loopback.ts';
import { type Route, type RouteInput, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';

/** Routes about the node itself. `document` gives the OpenAPI document as JSON. */
export function serviceRoutes({ metrics, keys }: ApiParts, document: () => string): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/health',
      summary: 'Tell whether the node answers',
      open: true,
      answers: [{ status: 204, description: 'it does' }],
      handle: () => ({ status: 204 }),
    }),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'Metrics in the Prometheus text format; needs no key on loopback',
      open: true,
      answers: [{ status: 200, description: 'the metrics' }],
      errors: [401],
      handle: async ({ headers, peer }) => {
        if (!isLocal(headers, peer)) await authenticate(headers, keys);
        return { status: 200, text: { type: metrics.contentType, content: await metrics.render() } };
      },
    }),
    route({
      method: 'GET',
      path: '/openapi.json',
      summary: 'This API as an OpenAPI document',
      open: true,
      hidden: true,
      answers: [{ status: 200, description: 'the document' }],
      handle: () => ({ status: 200, text: { type: 'application/json', content: document() } }),
    }),
    route({
      method: 'GET',
      path: '/teams',
      summary: 'List the teams of the key: there is one',
      answers: [{ status: 200, description: 'the teams', schema: z.array(Team) }],
      handle: ({ caller }) => ({
        status: 200,
        body: [
          { teamID: caller?.team ?? '', name: caller?.team ?? '', apiKey: caller?.key ?? '', isDefault: true },
        ] satisfies Team[],
      }),
    }),
  ];
}

/** A request that a proxy on this host passed on comes from elsewhere. */
function isLocal(headers: Headers, peer: RouteInput<unknown, unknown>['peer']): boolean {
  const passedOn = headers.has('forwarded') || headers.has('x-forwarded-for') || headers.has('x-real-ip');
  return isLoopback(peer) && !passedOn;
}
