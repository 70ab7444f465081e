import type { BlockStore } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../assets/contract.ts';
import { assetPlaces } from '../assets/places.ts';
import type { Config } from '../config/schema.ts';
import type { LifecycleFaults } from '../sandboxes/faults.ts';
import type { Launch, StartPoint } from '../sandboxes/launch/launch.ts';
import type { CapturedGuests } from '../sandboxes/restoring/captured-guests.ts';
import type { SnapshotRepository } from '../snapshots/contract.ts';
import { verifyDisk } from '../snapshots/disks/verify-disk.ts';
import { openSnapshotRepository } from '../snapshots/repository/repository.ts';
import type { Template } from '../templates/contract.ts';
import { diskLayers } from '../templates/layers.ts';
import { createMachineBuilder } from '../templates/machine/build.ts';
import { Machines } from '../templates/machine/machines.ts';
import { useGuestOverTcp } from '../templates/machine/use-guest.ts';
import type { Folders } from './folders.ts';
import type { Vms } from './vms.ts';

/** The snapshots of this node. */
export function openSnapshots(
  folders: Folders,
  volumes: Pick<BlockStore, 'layersOf'>,
  clock: Clock,
  log: Logger,
): Promise<SnapshotRepository> {
  return openSnapshotRepository({
    root: folders.snapshots,
    verifyDisk: (disk) => verifyDisk(volumes, disk),
    ...{ clock, log },
  });
}

export interface StartPointsOptions {
  readonly config: Config;
  readonly vms: Vms;
  readonly launch: Launch;
  readonly guests: CapturedGuests;
  readonly volumes: BlockStore;
  readonly repository: SnapshotRepository;
  readonly uses: AssetUses;
  readonly faults: LifecycleFaults;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Longest time between the question what a sandbox starts from, and its start having it open. */
const ABOUT_TO_START_MS = 600_000;

/** What sandboxes start from: the captured machine of their template, or its disk where there is none. */
export interface StartPoints {
  of(template: Template): Promise<StartPoint>;
  /** Ids of the captured machines of these templates, whether they are there or not. */
  idsOf(templates: readonly Template[]): readonly string[];
  /** Removes captured machines of other templates than these. @returns how many */
  keepOnly(templates: readonly Template[]): Promise<number>;
  /** Gives up what is being captured. */
  close(): Promise<void>;
}

export function createStartPoints(options: StartPointsOptions): StartPoints {
  const { config, vms, launch, guests, volumes, repository, uses, faults, clock, log } = options;
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  const { kind, build, cpu } = vms.host;
  const machines = new Machines({
    folder: assetPlaces(config.assets).machines,
    build: createMachineBuilder({
      ...{ launch, guests, volumes, useGuest: useGuestOverTcp, faults, clock, log },
      facts: { vmm: { kind, build }, cpu, ...vms.boot },
    }),
    platform: JSON.stringify([vms.host, vms.boot, vms.parts]),
    ...{ repository, uses, faults, clock, log, signal },
  });
  return {
    async of(template) {
      const id = config.templates.capture ? await machines.of(template) : undefined;
      const quiet = template.start.startCommand === undefined && template.start.ready === undefined;
      if (id !== undefined) return { kind: 'checkpoint', id, event: 'create', quiet };
      return { kind: 'disk', disk: { kind: 'layers', layers: diskLayers(template.source) } };
    },
    idsOf: (templates) => templates.map((template) => machines.idOf(template)),
    keepOnly: (templates) => machines.keepOnly(templates, clock.now() - ABOUT_TO_START_MS),
    close() {
      closing.abort(new AenvError('shutting_down', 'the daemon is shutting down'));
      return machines.close();
    },
  };
}
