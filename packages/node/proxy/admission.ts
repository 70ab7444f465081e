import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { RouteDirectory, RouteTarget } from './contract.ts';
import { TRAFFIC_TOKEN_HEADER } from './headers/request-headers.ts';
import { sandboxGone } from './incarnations/incarnation.ts';
import { isOpenEnvdPath } from './routing/envd-paths.ts';
import type { SandboxRoute } from './routing/route.ts';

/**
 * Whether a request may go to the sandbox that it names; nothing is dialled for one that may not.
 * @throws AenvError `sandbox_gone`, `route_not_found` for what only the host may ask of envd, `forbidden` without the
 *   token of a private sandbox
 */
export function admit(directory: RouteDirectory, route: SandboxRoute, headers: IncomingHttpHeaders): RouteTarget {
  const { sandboxId } = route;
  const found = directory.lookup(sandboxId);
  if (found.kind === 'unknown') throw sandboxGone(sandboxId);
  if (found.kind === 'unavailable') {
    throw new AenvError('sandbox_gone', `The sandbox serves no requests: it is ${found.state}`, {
      details: { sandboxId, state: found.state },
      ...(found.state === 'paused'
        ? { remediation: 'Let it go on with `aenv resume ID` or the connect of an SDK.' }
        : {}),
    });
  }
  const { target } = found;
  requireAccess(route, target, headers);
  return target;
}

/**
 * Whether a request may reach what it asks for, once the sandbox runs.
 * @throws AenvError `route_not_found`, `forbidden`
 */
export function requireAccess(
  { sandboxId, port, path }: SandboxRoute,
  { trafficAccessToken }: Pick<RouteTarget, 'trafficAccessToken'>,
  headers: IncomingHttpHeaders,
): void {
  if (port === ENVD_PORT) {
    if (isOpenEnvdPath(path)) return;
    throw new AenvError('route_not_found', 'There is no such path on the port of envd.', { details: { sandboxId } });
  }
  if (trafficAccessToken === undefined) return;
  const given = headers[TRAFFIC_TOKEN_HEADER];
  if (typeof given === 'string' && equal(given, trafficAccessToken)) return;
  throw new AenvError('forbidden', `The sandbox is private: send its token in the header ${TRAFFIC_TOKEN_HEADER}.`, {
    details: { sandboxId },
  });
}

/** Compares in a time that tells nothing of either text. */
function equal(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
