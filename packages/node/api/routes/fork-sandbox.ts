import { ForkResult, ForkSandbox } from '@aenv/contracts/api/fork.ts';
import { z } from '@hono/zod-openapi';
import type { Fork } from '../../sandboxes/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentSandbox } from '../present/sandbox.ts';
import { sandboxIdOf } from '../query/sandbox-id.ts';
import { DEFAULT_TIMEOUT, timeToLive } from '../query/timeouts.ts';

export function forkSandboxRoutes({ sandboxes, settings }: ApiParts): readonly Route[] {
  const present = (fork: Fork): ForkResult =>
    'view' in fork ? { sandbox: presentSandbox(fork.view, settings.domain) } : { error: fork.error.toBody() };
  return [
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/fork',
      summary: 'Make sandboxes that go on from where this one is',
      body: ForkSandbox,
      bodyOptional: true,
      answers: [
        { status: 201, description: 'one entry for each: the sandbox or its error', schema: z.array(ForkResult) },
      ],
      errors: [404, 409, 500, 503, 507],
      handle: async ({ param, body }) => {
        const timeoutSeconds = timeToLive(body.timeout ?? DEFAULT_TIMEOUT.v2, settings.maxTimeoutSeconds);
        const forks = await sandboxes.fork(sandboxIdOf(param('sandboxID')), { count: body.count ?? 1, timeoutSeconds });
        return { status: 201, body: forks.map(present) };
      },
    }),
  ];
}
