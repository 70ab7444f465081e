import { randomBytes, randomUUID } from 'node:crypto';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { envdOverTcp } from '@aenv/node/sandboxes/envd-client/envd-client.ts';
import { GuestLine } from '@aenv/node/sandboxes/envd-client/request.ts';
import { newSecret, randomName } from '@aenv/node/sandboxes/identity.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { type CommandRun, runCommandAt } from '../sandboxes/envd.ts';

const connect = envdOverTcp(systemClock);

/** The least that a captured guest must be told before it runs a command: that its programs go on. */
export async function letGo(address: string, hostSecret: string, signal: AbortSignal): Promise<void> {
  await connect({ address, port: ENVD_PORT }).unfreeze(hostSecret, {}, signal);
}

/** All that the daemon tells a guest which becomes a sandbox: time, entropy, secrets, names, and that it goes on. */
export async function bringUpToDate(address: string, oldSecret: string, signal: AbortSignal): Promise<void> {
  using line = new GuestLine();
  const envd = connect({ address, port: ENVD_PORT, line });
  const hostSecret = newSecret();
  const sandboxId = `i${randomName(20)}`;
  const machineId = randomUUID().replaceAll('-', '');
  const names = { sandboxId, hostname: sandboxId, templateId: 'base', machineId };
  const seed = randomBytes(32).toString('base64');
  const become = { event: 'create', letGo: true, hostSecret, seed, accessToken: null, ...names } as const;
  await envd.init(become, [oldSecret, hostSecret], signal);
}

/** A command as root, asked of envd without a proxy. */
export function runDirectly(address: string, cmd: string, args: readonly string[]): Promise<CommandRun> {
  const headers = { authorization: `Basic ${Buffer.from('root:').toString('base64')}` };
  // The next machine has the same address.
  return runCommandAt({ url: `http://${address}:${ENVD_PORT}`, headers, agent: false }, cmd, args);
}
