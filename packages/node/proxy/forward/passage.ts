import type { IncomingMessage } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ProxyConfig } from '../config.ts';
import type { RouteTarget } from '../contract.ts';
import type { Incarnation } from '../incarnations/incarnation.ts';
import type { Outcome } from '../proxy-metrics.ts';
import type { SandboxRoute } from '../routing/route.ts';
import type { PassingBytes } from '../sockets/passing-bytes.ts';

/** One admitted request on its way to a sandbox. */
export interface Passage {
  readonly request: IncomingMessage;
  readonly route: SandboxRoute;
  readonly target: RouteTarget;
  readonly incarnation: Incarnation;
  readonly config: ProxyConfig;
  readonly bytes: PassingBytes;
  /** called exactly once, when nothing of the request is held any more */
  readonly done: (outcome: Outcome) => void;
}

/** What the platform answers when the server in the sandbox could not be asked or gave no answer. */
export function upstreamError(error: unknown, route: SandboxRoute): AenvError {
  if (error instanceof AenvError) return error;
  const malformed = error instanceof Error && 'code' in error && String(error.code).startsWith('HPE_');
  return new AenvError(
    'upstream_failed',
    malformed
      ? 'The server in the sandbox sent an answer that is not valid HTTP.'
      : 'The server in the sandbox broke the connection before it answered.',
    { details: { sandboxId: route.sandboxId, port: route.port }, cause: error },
  );
}

export function stalled(route: SandboxRoute): AenvError {
  return new AenvError('upstream_timeout', 'The server in the sandbox does not read the request.', {
    details: { sandboxId: route.sandboxId, port: route.port },
  });
}
