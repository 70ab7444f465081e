import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlockStore } from '@aenv/block/contract.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import type { CheckpointRef, SandboxRecord } from '../../store/sandbox-record.ts';
import { driveVolumeIds } from '../drives/take-drives.ts';
import { unmountBelow } from './mounts.ts';
import { findVmProcesses } from './processes.ts';

export interface RecoveryOptions {
  readonly ledger: SandboxLedger;
  readonly volumes: BlockStore;
  /** whether a checkpoint is there as a whole */
  readonly hasCheckpoint: (checkpoint: CheckpointRef, drives: number) => Promise<boolean>;
  /** folder of everything that lasts as long as the host is up */
  readonly runtimeDir: string;
  /** folder of the VMs' run folders, below `runtimeDir`; VM processes are known by it */
  readonly vmDir: string;
  /** folders with files of VMs that are gone now */
  readonly vmFileDirs: readonly VmFileDir[];
  /** whether VMs that have outlived their daemon go on; the others are removed */
  readonly keepVms: boolean;
  /** removes namespaces, links and rules of earlier daemons, but for the namespaces to keep; returns how many things that were */
  readonly removeNetwork: (keep: readonly string[]) => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface VmFileDir {
  readonly path: string;
  /** names of what is shared by all VMs and stays */
  readonly keep?: RegExp;
}

/** How much an earlier daemon left behind. */
export interface RecoveryReport {
  readonly lost: readonly string[];
  /** ids of those whose VM runs on, to be taken over; all that belongs to them was left as it is */
  readonly running: readonly string[];
  /** how many are paused, and stay so */
  readonly paused: number;
  readonly processes: number;
  readonly network: number;
  readonly mounts: number;
  readonly runFolders: number;
  readonly files: number;
  readonly volumes: number;
  /** what could not be removed, for people */
  readonly failures: readonly string[];
}

const LOST_MESSAGE = 'the daemon or the host went down while it ran; found at the next start';

/**
 * Removes what a crash left behind: VM processes first, since they use all the rest. Then every sandbox that was alive is
 * lost, except those that are paused and, where VMs are kept, those whose VM process lives. Runs before anything else is
 * made and before the API listens; a step that fails is reported and does not stop the others.
 */
export async function recover(options: RecoveryOptions): Promise<RecoveryReport> {
  const { ledger, volumes, runtimeDir, vmDir, log } = options;
  const failures: string[] = [];
  const attempt = async <T>(what: string, fallback: T, step: () => Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
      return fallback;
    }
  };

  const rows = ledger.live();
  const paused = new Set<SandboxRecord>();
  for (const row of rows) {
    if (await attempt(`sandbox ${row.sandboxId}`, false, () => isPaused(options, row))) paused.add(row);
  }
  const running: SandboxRecord[] = [];
  for (const row of rows) if (!paused.has(row) && (await vmLives(options, row))) running.push(row);
  const spared = (name: string) => running.some((row) => namesOf(row).includes(name));

  const processes = await attempt('VM processes', 0, () => endProcesses(vmDir, running, failures));
  const network = await attempt('network', 0, () => options.removeNetwork(running.flatMap(({ netns }) => netns ?? [])));
  const mounts = await attempt('mounts', [], () => unmountBelow(runtimeDir));
  const runFolders = await attempt('run folders', 0, () => emptyFolder(vmDir, spared));
  let files = 0;
  for (const { path, keep } of options.vmFileDirs) {
    files += await attempt(path, 0, () => emptyFolder(path, (name) => keep?.test(name) === true || spared(name)));
  }
  const left = (await attempt('volumes', [], () => volumes.list())).filter((id) => !spared(id));
  for (const id of left) await attempt(`volume ${id}`, undefined, () => volumes.remove(id));
  const lost = rows.filter((row) => !paused.has(row) && !running.includes(row));
  for (const row of lost) markLost(options, row);

  const report: RecoveryReport = {
    lost: lost.map((row) => row.sandboxId),
    running: running.map((row) => row.sandboxId),
    paused: paused.size,
    processes,
    network,
    mounts: mounts.length,
    runFolders,
    files,
    volumes: left.length,
    failures,
  };
  log[failures.length > 0 ? 'warn' : 'info']('recovery done', { ...report });
  return report;
}

/**
 * Ends every VM process that works below our folder, whether a row names it or not: one that was started right before the
 * crash has no row yet. The command line decides and not the row's pid, which after a reboot may be a stranger's.
 */
async function endProcesses(vmDir: string, spared: readonly SandboxRecord[], failures: string[]): Promise<number> {
  const pids = new Set(spared.map(({ vm }) => vm?.process.pid));
  const processes = (await findVmProcesses(vmDir)).filter(({ pid }) => !pids.has(pid));
  const ends = processes.map(async (process) => {
    if (!(await killAndWait(process))) failures.push(`process ${process.pid} does not end`);
  });
  await Promise.all(ends);
  return processes.length;
}

async function emptyFolder(folder: string, keep: (name: string) => boolean): Promise<number> {
  let names: string[];
  try {
    names = (await readdir(folder)).filter((name) => !keep(name));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true });
  return names.length;
}

/** Whether the VM of a sandbox that was up runs on. One that was still starting was promised to nobody. */
async function vmLives({ keepVms }: RecoveryOptions, { state, vm }: SandboxRecord): Promise<boolean> {
  if (!keepVms || vm === undefined || (state !== 'running' && state !== 'pausing')) return false;
  return await isAlive(vm.process);
}

/** Names of the files and folders that belong to the VM and the disks of a sandbox. */
function namesOf(row: SandboxRecord): readonly string[] {
  const { vm, volumeId } = row;
  if (vm === undefined || volumeId === undefined) return [];
  return [vm.incarnation, `${vm.incarnation}.log`, `${vm.incarnation}.mem`, volumeId, ...driveVolumeIds(row)];
}

/**
 * Whether the sandbox is paused, as far as the disk knows: a pause that was complete counts although nobody could say so
 * any more. A resume that was under way has changed nothing yet; that what it goes on from can be read is not asked, as
 * little as of one that was not resumed: it may still be mended.
 */
async function isPaused({ ledger, hasCheckpoint }: RecoveryOptions, row: SandboxRecord): Promise<boolean> {
  const { state, checkpoint } = row;
  if (checkpoint === undefined || !['pausing', 'paused', 'resuming'].includes(state)) return false;
  if (state === 'pausing' && !(await hasCheckpoint(checkpoint, row.drives.length))) return false;
  ledger.update(row.sandboxId, state, {
    state: 'paused',
    ...(row.pausedAt === undefined ? { pausedAt: row.endAt } : {}),
    ...{ slotIndex: null, netns: null, volumeId: null, vm: null, boot: null, incarnation: null },
  });
  return true;
}

function markLost({ ledger, clock }: RecoveryOptions, row: SandboxRecord): void {
  ledger.update(row.sandboxId, row.state, {
    state: 'lost',
    endReason: 'daemon_crashed',
    endMessage: LOST_MESSAGE,
    endedAt: new Date(clock.now()),
    slotIndex: null,
    netns: null,
    volumeId: null,
    vm: null,
    boot: null,
    checkpoint: null,
  });
}
