import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';

/** What a guest hears first that boots, or that becomes another sandbox: all that it is and has. */
export function firstInit({ sandboxId, templateId, start, envVars, envdAccessToken }: SandboxRecord): InitRequest {
  return {
    envVars: { ...start.envVars, ...envVars },
    accessToken: envdAccessToken ?? null,
    defaultUser: start.user,
    defaultWorkdir: start.workdir,
    ...{ sandboxId, templateId, hostname: sandboxId },
  };
}
