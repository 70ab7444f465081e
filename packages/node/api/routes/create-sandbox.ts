import { NewSandbox, NewSandboxV2 } from '@aenv/contracts/api/create-sandbox.ts';
import { Sandbox } from '@aenv/contracts/api/sandbox.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { CreateSandbox, SandboxNetwork } from '../../sandboxes/contract.ts';
import { parseTemplateReference } from '../../templates/reference.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentSandbox } from '../present/sandbox.ts';
import { DEFAULT_TIMEOUT, timeToLive } from '../query/timeouts.ts';

const answers = [{ status: 201, description: 'the sandbox runs', schema: Sandbox }] as const;
const errors = [404, 413, 500, 503, 507];

export function createSandboxRoutes({ sandboxes, settings }: ApiParts): readonly Route[] {
  const create = async (body: NewSandbox | NewSandboxV2, secure: boolean, defaultTimeout: number) => {
    const timeoutSeconds = timeToLive(body.timeout ?? defaultTimeout, settings.maxTimeoutSeconds);
    const view = await sandboxes.create(createOptions(body, secure, timeoutSeconds));
    return { status: 201, body: presentSandbox(view, settings.domain) } as const;
  };
  return [
    route({
      method: 'POST',
      path: '/sandboxes',
      summary: 'Create a sandbox',
      body: NewSandbox,
      answers,
      errors,
      handle: ({ body }) => create(body, body.secure ?? false, DEFAULT_TIMEOUT.v1),
    }),
    route({
      method: 'POST',
      path: '/v2/sandboxes',
      summary: 'Create a secured sandbox',
      body: NewSandboxV2,
      answers,
      errors,
      handle: ({ body }) => create(body, true, DEFAULT_TIMEOUT.v2),
    }),
  ];
}

/** @throws AenvError `invalid_request` */
export function createOptions(body: NewSandbox | NewSandboxV2, secure: boolean, timeoutSeconds: number): CreateSandbox {
  const network = networkOf(body.network);
  if (!network.allowPublicTraffic && !secure) {
    throw new AenvError('invalid_request', 'body.network.allowPublicTraffic: false needs a secured sandbox', {
      remediation: 'Send `secure: true` as well.',
    });
  }
  return {
    template: templateOf(body.templateID),
    timeoutSeconds,
    metadata: body.metadata ?? {},
    envVars: body.envVars ?? {},
    secure,
    allowInternetAccess: body.allow_internet_access ?? null,
    network,
    ...endOf(body),
  };
}

/** What the end of the time to live does. */
function endOf(body: NewSandbox | NewSandboxV2): Pick<CreateSandbox, 'onTimeout' | 'pauseMemory' | 'autoResume'> {
  const pause = body.autoPause ?? false;
  const pauseMemory = body.autoPauseMemory !== false;
  const autoResume = body.autoResume?.enabled ?? false;
  const refuse = (why: string) => new AenvError('invalid_request', why);
  if (!pauseMemory && !pause) throw refuse('body.autoPauseMemory: false makes sense with autoPause: true only');
  if (!pauseMemory && autoResume)
    throw refuse('body.autoResume: what is kept without its memory is not resumed by traffic');
  return { onTimeout: pause ? 'pause' : 'kill', pauseMemory, autoResume };
}

function networkOf(network: NewSandbox['network']): SandboxNetwork {
  return {
    allowPublicTraffic: network?.allowPublicTraffic ?? true,
    ...(network?.maskRequestHost == null ? {} : { maskRequestHost: network.maskRequestHost }),
    httpsPorts: network?.httpsPorts ?? [],
  };
}

/** Checks the syntax here, so that the message names the field. */
function templateOf(text: string): string {
  try {
    parseTemplateReference(text);
  } catch (error) {
    const { message, remediation } = AenvError.from(error);
    throw new AenvError('invalid_request', `body.templateID: ${message}`, { remediation, cause: error });
  }
  return text.trim().toLowerCase();
}
