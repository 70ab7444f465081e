import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import { restoreCommandLine } from '@aenv/vmm/qemu/command-line.ts';
import { connectQmp } from '@aenv/vmm/qemu/connect-qmp.ts';
import { blockNode } from '@aenv/vmm/qemu/drives.ts';
import { startProcess } from '@aenv/vmm/qemu/process.ts';
import type { QmpClient } from '@aenv/vmm/qemu/qmp/client.ts';
import type { BenchHost } from '../host/bench-host.ts';
import type { CapturedMachine } from './captured-machine.ts';

/** Where a bare machine runs, one at a time. */
export interface BarePlace {
  readonly slot: NetworkSlot;
  /** has the overlay of its disk, `root.qcow2` */
  readonly folder: string;
}

const COMMAND_MS = 30_000;
const SAVE_MS = 120_000;

/**
 * A QEMU of the same machine on the same memory and device state as a sandbox of the template, with none of the daemon's
 * work around it: no user of its own, no ledger, no block daemon.
 */
export class BareMachine implements AsyncDisposable {
  readonly process: ProcessIdentity;
  readonly address: string;
  readonly #qmp: QmpClient;

  private constructor(process: ProcessIdentity, address: string, qmp: QmpClient) {
    this.process = process;
    this.address = address;
    this.#qmp = qmp;
  }

  /** Loads the state and goes on at once: what is sent to the guest waits in its tap until then. */
  static async start(
    host: BenchHost,
    machine: CapturedMachine,
    place: BarePlace,
    signal: AbortSignal,
  ): Promise<BareMachine> {
    const { slot, folder } = place;
    const qmpSocket = join(folder, 'qmp.sock');
    await using output = await open(join(folder, 'stderr'), 'w');
    const argv = ['nsenter', `--net=${slot.netns}`, '--', host.qemu.system] as const;
    const { identity, ended } = await startProcess(
      [...argv, ...commandLine(host, machine, place, qmpSocket)],
      host.qemu.env,
      output.fd,
    );
    try {
      const qmp = await connectQmp(qmpSocket, ended, COMMAND_MS, signal);
      await qmp.execute('migrate-incoming', { uri: `file:${machine.deviceState}` }, COMMAND_MS);
      // Before the state is there it means: as soon as it is.
      await qmp.execute('cont', {}, COMMAND_MS);
      return new BareMachine(identity, slot.hostAddress, qmp);
    } catch (error) {
      await killAndWait(identity);
      throw error;
    }
  }

  stop(): Promise<unknown> {
    return this.#qmp.execute('stop', {}, COMMAND_MS);
  }

  /** State of processors and devices alone, as the daemon has it written. */
  saveDevices(path: string): Promise<unknown> {
    return this.#qmp.execute('xen-save-devices-state', { filename: path, live: false }, COMMAND_MS);
  }

  /** All of it, memory included, as QEMU itself keeps a machine that stands still. */
  async saveAll(path: string): Promise<void> {
    await this.#qmp.execute('migrate-set-parameters', { 'max-bandwidth': 2 ** 40 }, COMMAND_MS);
    await this.#qmp.execute('migrate', { uri: `file:${path}` }, COMMAND_MS);
    const deadline = Date.now() + SAVE_MS;
    for (;;) {
      const { status } = (await this.#qmp.execute('query-migrate', {}, COMMAND_MS)) as { readonly status?: string };
      if (status === 'completed') return;
      if (status === 'failed' || Date.now() > deadline) throw new Error(`QEMU did not save the machine: ${status}`);
      await delay(2);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#qmp.close();
    await killAndWait(this.process);
  }
}

function commandLine(
  { qemu, accelerator }: BenchHost,
  { cpuCount, memoryMb, memoryBase, toolsDrive }: CapturedMachine,
  { slot, folder }: BarePlace,
  qmpSocket: string,
): string[] {
  const root = { kind: 'file', path: join(folder, 'root.qcow2'), format: 'raw', readOnly: false } as const;
  const tools = { kind: 'file', path: toolsDrive, format: 'raw', readOnly: true } as const;
  const shape = {
    ...{ incarnation: 'bare', runDir: folder, serialLog: join(folder, 'serial'), cpuCount, memoryMb, network: slot },
    drives: [
      { name: 'root', source: root },
      { name: 'tools', source: tools },
    ],
  };
  const memory = { path: memoryBase, access: 'read', ownedByVm: false } as const;
  const node = blockNode('drive0', root);
  return restoreCommandLine(shape, { install: qemu, accelerator, memory, qmpSocket }).map((argument) =>
    // The daemon has no use for overlays, so it knows no word for them.
    argument === JSON.stringify(node) ? JSON.stringify({ ...node, driver: 'qcow2' }) : argument,
  );
}
