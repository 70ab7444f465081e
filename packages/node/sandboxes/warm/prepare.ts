import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { UseGuest } from '../../templates/machine/use-guest.ts';
import type { Checkpoints } from '../checkpoints/contract.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import { GuestLine } from '../envd-client/request.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { newMachineId, newSecret, newSeed, randomName } from '../identity.ts';
import type { RestoreVm } from '../launch/launch.ts';
import { type PartsOptions, takeParts } from '../launch/parts.ts';
import { Stopwatch } from '../launch/phases.ts';
import type { Standing, WarmKey } from './contract.ts';

export interface PrepareOptions extends PartsOptions {
  readonly checkpoints: Pick<Checkpoints, 'open'>;
  readonly restoreVm: RestoreVm;
  readonly connectEnvd: ConnectEnvd;
  readonly useGuest: UseGuest;
  readonly faults?: LifecycleFaults;
}

const ANSWER_MS = 30_000;

/** After so many rounds a guest under emulation has nothing left to translate. */
const ROUNDS = 2;

/**
 * Continues a captured machine far enough that it answers within milliseconds later, and stops it again. It gets entropy
 * and a secret of its own, and goes through the steps of a restore, each with a name that nobody sees: an emulator
 * translates code when it runs for the first time, and what is captured is not translated. Programs of the user stand still,
 * as they were captured; where there are none, it also does what clients do first. All steps of a restore come once more
 * when it becomes a sandbox. Nothing is left when it throws.
 * @returns undefined for a machine that cannot stand ready: one with attached drives
 */
export async function prepareStanding(
  options: PrepareOptions,
  { checkpoint: id, quiet, ...shapeOf }: WarmKey,
  signal: AbortSignal,
): Promise<Standing | undefined> {
  const { faults = noLifecycleFaults } = options;
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
  await faults.hit('warm.parts_taken');
  const vm = await options.restoreVm(sandboxId, shape, image, signal);
  resources.add(() => vm.stop());
  await faults.hit('warm.machine_restored');
  await vm.resume();
  const secret = newSecret();
  const line = new GuestLine();
  resources.add(() => line[Symbol.dispose]());
  const envd = options.connectEnvd({ address: slot.hostAddress, port: ENVD_PORT, line });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const asCaptured = { capture: true, event: 'create', hostSecret: secret, seed: newSeed() } as const;
  await envd.init(asCaptured, [checkpoint.hostSecret, secret], limit);
  for (let round = 0; round < ROUNDS; round++) {
    await envd.init({ ...asSomebody(sandboxId), letGo: quiet }, [secret], limit);
    if (!quiet) continue;
    await options.useGuest(slot.hostAddress, limit);
    await envd.freeze(secret, limit);
  }
  await faults.hit('warm.guest_used');
  await vm.pause();
  await faults.hit('warm.stands');
  return { vm, slot, volume, drives, boot, secret, line, resources: resources.keep() };
}

/** What a sandbox is told when it is made, of one that is none yet. */
function asSomebody(sandboxId: string): InitRequest {
  const names = { sandboxId, templateId: sandboxId, hostname: sandboxId, machineId: newMachineId() };
  return { event: 'create', accessToken: null, envVars: {}, seed: newSeed(), ...names };
}
