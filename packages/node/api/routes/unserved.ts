import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Method, Route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { sandboxIdOf } from '../query/sandbox-id.ts';

const OLD_BUILDS = 'builds of the first version of the API, with a Dockerfile; use POST /v3/templates';

/** Routes of the E2B API that are known and not served yet, with the feature that they belong to. */
const UNSERVED: readonly (readonly [Method, string, string])[] = [
  ['PUT', '/sandboxes/{sandboxID}/network', 'changing egress rules'],
  ['POST', '/templates', OLD_BUILDS],
  ['POST', '/templates/{templateID}', OLD_BUILDS],
  ['GET', '/templates/{templateID}/files/{hash}', 'building templates'],
  ['POST', '/templates/{templateID}/builds/{buildID}', OLD_BUILDS],
  ['GET', '/volumes', 'volumes'],
  ['POST', '/volumes', 'volumes'],
  ['GET', '/volumes/{volumeID}', 'volumes'],
  ['DELETE', '/volumes/{volumeID}', 'volumes'],
  ['GET', '/secrets', 'secrets'],
  ['POST', '/secrets', 'secrets'],
  ['GET', '/secrets/{secretID}', 'secrets'],
  ['POST', '/secrets/{secretID}', 'secrets'],
  ['DELETE', '/secrets/{secretID}', 'secrets'],
  ['POST', '/access-tokens', 'access tokens'],
  ['DELETE', '/access-tokens/{tokenID}', 'access tokens'],
  ['GET', '/teams/{teamID}/metrics', 'metrics of teams'],
  ['GET', '/teams/{teamID}/metrics/max', 'metrics of teams'],
  ['GET', '/nodes', 'listing nodes'],
  ['GET', '/nodes/{nodeID}', 'listing nodes'],
];

/**
 * Answers 501 with the name of the feature, so that a client learns more than "not found". What is asked of a sandbox that
 * is not there is answered as everywhere else: clients tell the two apart.
 */
export function unservedRoutes({ sandboxes }: Pick<ApiParts, 'sandboxes'>): readonly Route[] {
  return [
    ...UNSERVED.map(([method, path, feature]) =>
      unserved(method, path, feature, (param) => {
        if (path.startsWith('/sandboxes/{sandboxID}/')) sandboxes.get(sandboxIdOf(param('sandboxID')));
        throw new AenvError('not_served', `not served yet: ${feature}`);
      }),
    ),
  ];
}

function unserved(
  method: Method,
  path: string,
  feature: string,
  refuse: (param: (name: string) => string) => never,
): Route {
  return {
    method,
    path,
    summary: `Not served yet: ${feature}`,
    hidden: true,
    answers: [],
    handle: ({ param }) => refuse(param),
  };
}
