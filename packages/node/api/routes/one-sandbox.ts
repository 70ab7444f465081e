import { Sandbox, SandboxDetail } from '@aenv/contracts/api/sandbox.ts';
import {
  ConnectSandbox,
  ConnectSandboxV2,
  PauseSandbox,
  RefreshSandbox,
  ResumeSandbox,
  SetTimeout,
} from '@aenv/contracts/api/sandbox-time.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentDetail, presentSandbox } from '../present/sandbox.ts';
import { sandboxIdOf } from '../query/sandbox-id.ts';
import { DEFAULT_TIMEOUT, newTimeout, refreshDuration, timeToLive } from '../query/timeouts.ts';

type WithParam = { param(name: string): string };
const idOf = ({ param }: WithParam): string => sandboxIdOf(param('sandboxID'));

const connected = [
  { status: 200, description: 'it was running; its end is not earlier than before', schema: Sandbox },
  { status: 201, description: 'it was paused and runs again', schema: Sandbox },
] as const;

export function oneSandboxRoutes({ sandboxes, settings }: ApiParts): readonly Route[] {
  const connect = async (input: WithParam, seconds: number, memory: boolean | null | undefined) => {
    const timeout = timeToLive(seconds, settings.maxTimeoutSeconds);
    const { view, resumed } = await sandboxes.connect(idOf(input), timeout, { memory: memory ?? true });
    return { status: resumed ? 201 : 200, body: presentSandbox(view, settings.domain) } as const;
  };
  return [
    route({
      method: 'GET',
      path: '/sandboxes/{sandboxID}',
      summary: 'Describe a sandbox',
      answers: [{ status: 200, description: 'the sandbox', schema: SandboxDetail }],
      errors: [404],
      handle: (input) => ({ status: 200, body: presentDetail(sandboxes.get(idOf(input)), settings.domain) }),
    }),
    route({
      method: 'DELETE',
      path: '/sandboxes/{sandboxID}',
      summary: 'End a sandbox',
      answers: [{ status: 204, description: 'it has ended and its traffic is cut' }],
      errors: [404],
      handle: async (input) => {
        await sandboxes.kill(idOf(input));
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/connect',
      summary: 'Connect to a sandbox and extend its time to live',
      body: ConnectSandbox,
      answers: connected,
      errors: [404, 409],
      handle: (input) => connect(input, input.body.timeout, input.body.memory),
    }),
    route({
      method: 'POST',
      path: '/v2/sandboxes/{sandboxID}/connect',
      summary: 'Connect to a sandbox and extend its time to live',
      body: ConnectSandboxV2,
      bodyOptional: true,
      answers: connected,
      errors: [404, 409],
      handle: (input) => connect(input, input.body.timeout ?? DEFAULT_TIMEOUT.v2, input.body.memory),
    }),
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/pause',
      summary: 'Stop a sandbox and keep all of it',
      body: PauseSandbox,
      bodyOptional: true,
      answers: [{ status: 204, description: 'all of it is on the disk, and nothing of it runs' }],
      errors: [404, 409, 500, 507],
      handle: async (input) => {
        await sandboxes.pause(idOf(input), { memory: input.body.memory ?? true });
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/resume',
      summary: 'Resume a paused sandbox',
      deprecated: true,
      body: ResumeSandbox,
      bodyOptional: true,
      answers: [{ status: 201, description: 'it runs again', schema: Sandbox }],
      errors: [404, 409, 500, 503],
      handle: async (input) => {
        const seconds = timeToLive(input.body.timeout ?? DEFAULT_TIMEOUT.v1, settings.maxTimeoutSeconds);
        const { memory, autoPause } = input.body;
        const view = await sandboxes.resume(idOf(input), seconds, {
          memory: memory ?? true,
          ...(autoPause == null ? {} : { onTimeout: autoPause ? 'pause' : 'kill' }),
        });
        return { status: 201, body: presentSandbox(view, settings.domain) };
      },
    }),
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/timeout',
      summary: 'Set when a sandbox ends',
      body: SetTimeout,
      answers: [{ status: 204, description: 'it ends then' }],
      errors: [404, 409],
      handle: async (input) => {
        await sandboxes.setTimeout(idOf(input), newTimeout(input.body.timeout, settings.maxTimeoutSeconds));
        return { status: 204 };
      },
    }),
    route({
      method: 'POST',
      path: '/sandboxes/{sandboxID}/refreshes',
      summary: 'Extend the time to live of a sandbox',
      deprecated: true,
      body: RefreshSandbox,
      bodyOptional: true,
      answers: [{ status: 204, description: 'it does not end earlier than that' }],
      errors: [404, 409],
      handle: async (input) => {
        await sandboxes.refresh(idOf(input), refreshDuration(input.body.duration));
        return { status: 204 };
      },
    }),
  ];
}
