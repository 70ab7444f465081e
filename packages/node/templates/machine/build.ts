import { randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlockStore, RemoteLayer } from '@aenv/block/contract.ts';
import { commitLayers } from '@aenv/block/layers/commit/commit.ts';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { sealJson } from '@aenv/platform/files/sealed-json.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../../sandboxes/faults.ts';
import { serviceOf } from '../../sandboxes/guest-service/service-of.ts';
import { newSecret, randomName } from '../../sandboxes/identity.ts';
import type { Launch } from '../../sandboxes/launch/launch.ts';
import { Stopwatch } from '../../sandboxes/launch/phases.ts';
import type { CapturedGuests } from '../../sandboxes/restoring/captured-guests.ts';
import type { SnapshotFacts } from '../../snapshots/contract.ts';
import { layersState } from '../../snapshots/disks/disk-state.ts';
import type { FileSum } from '../../snapshots/repository/hash-file.ts';
import { openSnapshotRepository } from '../../snapshots/repository/repository.ts';
import type { Template } from '../contract.ts';
import { diskLayers } from '../layers.ts';
import { DISK_LAYER, DISK_SUM } from './disk-files.ts';
import type { UseGuest } from './use-guest.ts';
import { warmService } from './warm-service.ts';

export interface MachineBuilderOptions {
  /** boots the guest */
  readonly launch: Launch;
  readonly volumes: BlockStore;
  readonly useGuest: UseGuest;
  readonly guests: CapturedGuests;
  /** what of a manifest does not depend on the template */
  readonly facts: Pick<SnapshotFacts, 'vmm' | 'cpu' | 'kernel' | 'toolsDrive'>;
  readonly faults?: LifecycleFaults;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Makes the machine that sandboxes of a template are continued from, in a folder that is a repository of its own.
 * @param id of the snapshot there
 * @param place `folder` is filled, and moved to `target` when it is complete
 */
export type BuildMachine = (
  template: Template,
  id: string,
  place: { readonly folder: string; readonly target: string },
  signal: AbortSignal,
) => Promise<void>;

const MIB = 1024 * 1024;

/**
 * Boots a guest, has it run what the template starts and load what the first call of a client needs, and captures it. It
 * has been told nobody's secrets and has no identity yet: whoever continues it gets his own.
 */
export function createMachineBuilder(options: MachineBuilderOptions): BuildMachine {
  const { launch, volumes, useGuest, guests, facts, clock, log, faults = noLifecycleFaults } = options;
  return async (template, id, { folder, target }, signal) => {
    const begin = clock.now();
    const name = `b${randomName(20)}`;
    const hostSecret = newSecret();
    const { start } = template;
    await using resources = new Rollback();
    const { vm, volume, slot, answer } = await launch({
      sandboxId: name,
      from: { kind: 'disk', disk: { kind: 'layers', layers: diskLayers(template.source) } },
      ...{ cpuCount: template.cpuCount, memoryMb: template.memoryMb, diskSizeMb: template.diskSizeMb },
      // A start command may fetch what it serves.
      ...{ internet: start.startCommand !== undefined, hostSecret, resources, signal },
      init: { capture: true, envVars: start.envVars, defaultUser: start.user, defaultWorkdir: start.workdir },
      ...serviceOf(template, undefined),
      stopwatch: new Stopwatch(),
      onVmStarted: () => {},
    });
    await useGuest(slot.hostAddress, signal);
    await warmService(slot.hostAddress, start.ready, signal);
    await guests.rehearse(slot.hostAddress, hostSecret, signal);
    const repository = await openSnapshotRepository({
      root: folder,
      verifyDisk: async () => ({ checkedBytes: 0, problems: [] }),
      ...{ clock, log },
    });
    resources.add(() => repository.close());
    const { memoryMb, cpuCount } = template;
    await using draft = await repository.begin({ id, memoryBase: vm.record.memoryBase, memoryMb });
    await volume.prepareSnapshot();
    await guests.freeze(slot.hostAddress, hostSecret);
    await vm.pause();
    await faults.hit('template.machine_stopped');
    resources.add(() => volumes.removeSnapshot(name));
    await vm.capture(draft);
    await faults.hit('template.memory_captured');
    const { durable } = await volume.snapshot(name);
    await faults.hit('template.disk_taken');
    await durable;
    const sum = await keepDisk(await volumes.layersOf(name), template, folder, signal);
    const layer = join(target, DISK_LAYER);
    await draft.commit(
      {
        ...{ ...facts, kind: 'template', names: [] },
        source: { templateId: template.templateId },
        disk: { state: layersState([...diskLayers(template.source), layer], [{ path: layer, ...sum }]), paths: [] },
        machine: { cpuCount, drives: ['root', 'tools'] },
        envd: { hostSecret, version: answer.envdVersion, bootId: '' },
      },
      { asNewBase: true },
    );
    await faults.hit('template.committed');
    log.info('template captured', { templateId: template.templateId, ms: clock.now() - begin });
  };
}

/** What the guest wrote while it booted becomes one layer over those of the image. @returns what is in its file */
async function keepDisk(
  layers: readonly (string | RemoteLayer)[],
  { source, diskSizeMb }: Template,
  folder: string,
  signal: AbortSignal,
): Promise<FileSum> {
  const below = diskLayers(source);
  const own = layers.slice(below.length).filter((layer) => typeof layer === 'string');
  if (own.length === 0 || below.some((layer, index) => keyOf(layer) !== keyOf(layers[index]))) {
    throw new AenvError('internal', 'the disk of a guest does not stand on the layers that it was made of');
  }
  const target = { path: join(folder, DISK_LAYER), uuid: randomUUID(), virtualSize: diskSizeMb * MIB };
  const options = { ...target, layers: own.map(fileLayer), isBottom: false };
  const { digest, sizeBytes } = await commitLayers(new LayerPool(), options, signal);
  await writeDurable(join(folder, DISK_SUM), sealJson({ digest, sizeBytes }), 0o600);
  // The block daemon reads it as a user of its own; what is in it is no more secret than the image.
  await chmod(target.path, 0o444);
  return { digest, sizeBytes };
}

function keyOf(layer: string | RemoteLayer | undefined): string | undefined {
  return typeof layer === 'object' ? layer.key : layer;
}
