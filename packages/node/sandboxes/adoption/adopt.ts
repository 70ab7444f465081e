import type { BlockStore } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { VmDriver, VmRecord } from '@aenv/vmm/contract/micro-vm.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import type { BootParts, Checkpoints, Machine } from '../checkpoints/contract.ts';
import { driveVolumeIds } from '../drives/take-drives.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';

export interface AdoptionOptions {
  readonly ledger: SandboxLedger;
  readonly driver: Pick<VmDriver, 'adopt'>;
  readonly volumes: Pick<BlockStore, 'open' | 'remove'>;
  readonly slots: Pick<SlotPool, 'release'>;
  /** slots that are kept, by the path of their namespace */
  readonly kept: ReadonlyMap<string, NetworkSlot>;
  readonly checkpoints: Pick<Checkpoints, 'remove'>;
  readonly connectEnvd: ConnectEnvd;
  /** why a VM that lives cannot be managed by this daemon; undefined when it can */
  readonly objection: (
    of: { readonly vm: VmRecord; readonly boot?: BootParts },
    slot: NetworkSlot,
  ) => Promise<string | undefined>;
  /** what machines boot here; those of rows that do not say were booted from it, if there is no objection */
  readonly boot: BootParts;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A sandbox of an earlier daemon that this one goes on with. */
export interface Adopted {
  readonly record: SandboxRecord;
  readonly machine: Machine;
  /** gives back all that it holds of the host */
  readonly resources: Rollback;
}

/** How long a guest may take to answer: it may have stood still, on a host that has much to do. */
const ANSWER_MS = 30_000;

/**
 * Takes over the VMs that have outlived an earlier daemon, all at a time. Each must be whole and its guest must answer as
 * the one that the ledger knows; what cannot be taken over is removed, and its sandbox is lost, with the reason.
 */
export async function adoptAll(options: AdoptionOptions, rows: readonly SandboxRecord[]): Promise<readonly Adopted[]> {
  const results = await Promise.all(rows.map((row) => adoptOrLose(options, row)));
  const adopted = results.filter((one) => one !== undefined);
  if (rows.length > 0) {
    options.log.info('microVMs of an earlier daemon are taken over', { adopted: adopted.length, of: rows.length });
  }
  // Nobody's: their sandboxes are not taken over.
  const used = new Set(adopted.map(({ record }) => record.netns));
  for (const [netns, slot] of options.kept) if (!used.has(netns)) await options.slots.release(slot);
  return adopted;
}

async function adoptOrLose(options: AdoptionOptions, row: SandboxRecord): Promise<Adopted | undefined> {
  const { ledger, clock, log } = options;
  const { sandboxId } = row;
  try {
    return await adopt(options, row);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.warn('a microVM of an earlier daemon is not taken over', { sandboxId, error });
    ledger.update(sandboxId, row.state, {
      state: 'lost',
      endReason: 'daemon_crashed',
      endMessage: `the daemon went down while it ran, and it could not be taken over: ${reason}`,
      endedAt: new Date(clock.now()),
      ...{ slotIndex: null, netns: null, volumeId: null, vm: null, boot: null, checkpoint: null },
    });
    return undefined;
  }
}

async function adopt(options: AdoptionOptions, row: SandboxRecord): Promise<Adopted> {
  const { driver, volumes, slots, kept, objection, connectEnvd, ledger } = options;
  await using undo = new Rollback();
  const { vm: vmRecord, volumeId, netns, hostSecret } = row;
  if (vmRecord === undefined || volumeId === undefined || netns === undefined) throw new Error('its row is not whole');
  const slot = kept.get(netns);
  if (slot !== undefined) undo.add(() => slots.release(slot));
  const driveVolumes = driveVolumeIds(row);
  for (const id of [volumeId, ...driveVolumes]) undo.add(() => volumes.remove(id));
  undo.add(async () => {
    await killAndWait(vmRecord.process);
  });
  if (slot === undefined) throw new Error('its network is gone');
  const why = await objection({ vm: vmRecord, ...(row.boot === undefined ? {} : { boot: row.boot }) }, slot);
  if (why !== undefined) throw new Error(why);
  const volume = await volumes.open(volumeId);
  const drives = await allEnded(
    row.drives.map(async (drive, at) => ({ drive, volume: await volumes.open(driveVolumes[at] ?? '') })),
  );
  const vm = await driver.adopt(vmRecord);
  if (vm === undefined) throw new Error('its microVM has ended');
  undo.add(() => vm.stop());

  // It may stand still, its programs stopped: for a capture that nobody waits for any more.
  await vm.resume();
  const envd = connectEnvd({ address: slot.hostAddress, port: ENVD_PORT });
  const limit = AbortSignal.timeout(ANSWER_MS);
  const answer = await envd.init({}, [hostSecret], limit);
  if (answer.bootId !== row.bootId) throw new AenvError('vm_died', 'another guest answers in its place');
  await envd.unfreeze(hostSecret, {}, limit);
  const { checkpoint, boot = options.boot } = row;
  if (checkpoint !== undefined) await options.checkpoints.remove(checkpoint.id);
  const record = ledger.update(row.sandboxId, row.state, { state: 'running', checkpoint: null, vm: vm.record, boot });
  if (record === undefined) throw new AenvError('internal', 'its row is not as expected');

  return { record, machine: { vm, volume, drives, address: slot.hostAddress, boot }, resources: undo.keep() };
}
