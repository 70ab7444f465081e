import { randomBytes } from 'node:crypto';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { UseGuest } from '../../templates/machine/use-guest.ts';
import type { Checkpoints } from '../checkpoints/contract.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import { newSecret, randomName } from '../identity.ts';
import type { RestoreVm } from '../launch/launch.ts';
import { type PartsOptions, takeParts } from '../launch/parts.ts';
import { Stopwatch } from '../launch/phases.ts';
import type { Standing, WarmKey } from './contract.ts';

export interface PrepareOptions extends PartsOptions {
  readonly checkpoints: Pick<Checkpoints, 'open'>;
  readonly restoreVm: RestoreVm;
  readonly connectEnvd: ConnectEnvd;
  readonly useGuest: UseGuest;
}

const ANSWER_MS = 30_000;

/**
 * Continues a captured machine far enough that it answers within milliseconds later, and stops it again. It gets entropy
 * and a secret of its own, and no name; programs of the user stand still, as they were captured. Where there are none, it
 * also does what clients do first: an emulator translates code when it runs for the first time, and what is captured is not
 * translated. All steps of a restore come when it becomes a sandbox. Nothing is left when it throws.
 * @returns undefined for a machine that cannot stand ready: one with attached drives
 */
export async function prepareStanding(
  options: PrepareOptions,
  { checkpoint: id, quiet, ...shapeOf }: WarmKey,
  signal: AbortSignal,
): Promise<Standing | undefined> {
  await using resources = new Rollback();
  const checkpoint = await options.checkpoints.open(id);
  resources.add(() => checkpoint.close());
  // Disks of drives are named after the sandbox that has them.
  if (checkpoint.drives.length > 0) return undefined;
  const sandboxId = `w${randomName(20)}`;
  const request = { ...shapeOf, sandboxId, internet: true, resources, stopwatch: new Stopwatch(), signal };
  const { disk, boot, image } = checkpoint;
  const toolsDrive = boot.toolsDrive.path;
  const { slot, volume, drives, shape } = await takeParts(options, request, disk, checkpoint.drives, toolsDrive);
  const vm = await options.restoreVm(sandboxId, shape, image, signal);
  resources.add(() => vm.stop());
  await vm.resume();
  const secret = newSecret();
  const envd = options.connectEnvd({ address: slot.hostAddress, port: ENVD_PORT });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const init = {
    capture: true,
    event: 'create',
    hostSecret: secret,
    seed: randomBytes(32).toString('base64'),
  } as const;
  await envd.init(init, [checkpoint.hostSecret, secret], limit);
  if (quiet) {
    await envd.unfreeze(secret, 'create', limit);
    await options.useGuest(slot.hostAddress, limit);
    await envd.freeze(secret, limit);
  }
  await vm.pause();
  return { vm, slot, volume, drives, boot, secret, resources: resources.keep() };
}
