import type { SandboxRecord } from '../store/sandbox-record.ts';
import type { Template } from '../templates/contract.ts';
import type { CreateSandbox } from './contract.ts';
import type { AttachedDrive } from './drives/contract.ts';
import { newSandboxId, newSecret } from './identity.ts';

/** What of a template, or of a snapshot, a new sandbox takes over. */
export type SandboxShape = Pick<
  Template,
  'templateId' | 'aliases' | 'cpuCount' | 'memoryMb' | 'diskSizeMb' | 'envdVersion' | 'start'
> & {
  /** of a snapshot: what its machine has besides its root */
  readonly drives?: readonly AttachedDrive[];
};

/** The first row of a new sandbox: fresh id, tokens and host secret, nothing on the host yet. */
export function newRecord(options: CreateSandbox, template: SandboxShape, now: number): SandboxRecord {
  const alias = template.aliases[0];
  return {
    sandboxId: newSandboxId(),
    templateId: template.templateId,
    ...(alias === undefined ? {} : { alias }),
    state: 'creating',
    createdAt: new Date(now),
    startedAt: new Date(now),
    endAt: new Date(now + options.timeoutSeconds * 1000),
    timeoutSeconds: options.timeoutSeconds,
    cpuCount: template.cpuCount,
    memoryMb: template.memoryMb,
    diskSizeMb: template.diskSizeMb,
    metadata: options.metadata,
    envVars: options.envVars,
    start: template.start,
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
    drives: template.drives ?? (options.drives ?? []).map(({ drive }) => drive),
  };
}

/** The first row of a fork: what the parent was made with, and an identity and secrets of its own. */
export function childRecord(parent: SandboxRecord, timeoutSeconds: number, now: number): SandboxRecord {
  const { templateId, alias, cpuCount, memoryMb, diskSizeMb, metadata, envVars, start, envdVersion, secure } = parent;
  const { allowInternetAccess, network, onTimeout, autoResume, pauseMemory, drives } = parent;
  return {
    sandboxId: newSandboxId(),
    ...{ templateId, ...(alias === undefined ? {} : { alias }) },
    state: 'creating',
    createdAt: new Date(now),
    startedAt: new Date(now),
    endAt: new Date(now + timeoutSeconds * 1000),
    timeoutSeconds,
    ...{ cpuCount, memoryMb, diskSizeMb, metadata, envVars, start, envdVersion, secure },
    ...(secure ? { envdAccessToken: newSecret() } : {}),
    ...(network.allowPublicTraffic ? {} : { trafficAccessToken: newSecret() }),
    hostSecret: newSecret(),
    ...{ allowInternetAccess, network, onTimeout, autoResume, pauseMemory, drives },
  };
}
