import type { SandboxRecord } from '../store/sandbox-record.ts';
import type { Template } from '../templates/contract.ts';
import type { CreateSandbox } from './contract.ts';
import { newSandboxId, newSecret } from './identity.ts';

/** The first row of a new sandbox: fresh id, tokens and host secret, nothing on the host yet. */
export function newRecord(options: CreateSandbox, template: Template, now: number): SandboxRecord {
  const alias = template.aliases[0];
  return {
    sandboxId: newSandboxId(),
    templateId: template.templateId,
    ...(alias === undefined ? {} : { alias }),
    state: 'creating',
    createdAt: new Date(now),
    startedAt: new Date(now),
    endAt: new Date(now + options.timeoutSeconds * 1000),
    cpuCount: template.cpuCount,
    memoryMb: template.memoryMb,
    diskSizeMb: template.diskSizeMb,
    metadata: options.metadata,
    envVars: options.envVars,
    envdVersion: template.envdVersion,
    secure: options.secure,
    ...(options.secure ? { envdAccessToken: newSecret() } : {}),
    ...(options.network.allowPublicTraffic ? {} : { trafficAccessToken: newSecret() }),
    hostSecret: newSecret(),
    allowInternetAccess: options.allowInternetAccess,
    network: options.network,
    onTimeout: options.onTimeout,
    autoResume: options.autoResume,
    pauseMemory: options.pauseMemory,
  };
}
