import type { ListedSandbox, Sandbox, SandboxDetail } from '@aenv/contracts/api/sandbox.ts';
import type { SandboxView } from '../../sandboxes/contract.ts';

/** Old clients want some text here; it means nothing. */
const CLIENT_ID = 'aenv';

/** @param domain what clients put after `PORT-SANDBOXID.`; absent when no domain leads here */
export function presentSandbox(view: SandboxView, domain: string | undefined): Sandbox {
  return {
    sandboxID: view.sandboxId,
    templateID: view.templateId,
    clientID: CLIENT_ID,
    envdVersion: view.envdVersion,
    ...(view.alias === undefined ? {} : { alias: view.alias }),
    ...(view.envdAccessToken === undefined ? {} : { envdAccessToken: view.envdAccessToken }),
    ...(view.trafficAccessToken === undefined ? {} : { trafficAccessToken: view.trafficAccessToken }),
    ...(domain === undefined ? {} : { domain }),
  };
}

export function presentListed(view: SandboxView): ListedSandbox {
  return {
    sandboxID: view.sandboxId,
    templateID: view.templateId,
    clientID: CLIENT_ID,
    startedAt: view.startedAt.toISOString(),
    endAt: view.endAt.toISOString(),
    cpuCount: view.cpuCount,
    memoryMB: view.memoryMb,
    diskSizeMB: view.diskSizeMb,
    // Clients know two states only; one that comes up or goes down still counts as running.
    state: view.state === 'paused' ? 'paused' : 'running',
    envdVersion: view.envdVersion,
    ...(view.alias === undefined ? {} : { alias: view.alias }),
    ...(Object.keys(view.metadata).length === 0 ? {} : { metadata: view.metadata }),
  };
}

export function presentDetail(view: SandboxView, domain: string | undefined): SandboxDetail {
  const { network } = view;
  return {
    ...presentListed(view),
    ...(domain === undefined ? {} : { domain }),
    ...(view.envdAccessToken === undefined ? {} : { envdAccessToken: view.envdAccessToken }),
    allowInternetAccess: view.allowInternetAccess,
    network: {
      allowPublicTraffic: network.allowPublicTraffic,
      ...(network.maskRequestHost === undefined ? {} : { maskRequestHost: network.maskRequestHost }),
      ...(network.httpsPorts.length === 0 ? {} : { httpsPorts: [...network.httpsPorts] }),
    },
    lifecycle: { onTimeout: view.onTimeout, autoResume: view.autoResume },
  };
}
