import { stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import type { SerialLog } from '../console/serial-log.ts';
import type { CaptureTarget, MicroVm, VmExit, VmRecord, VmState } from '../contract/micro-vm.ts';
import { saveDeviceState } from './capture/device-state.ts';
import { drainConsole } from './console-ring.ts';
import { guestMemory } from './memory/guest-memory.ts';
import type { Mapping } from './memory/mapping.ts';
import { privateBytes } from './memory/private-bytes.ts';
import { countPrivate, readMemory } from './memory/read-memory.ts';
import { endAfterSocket, type VmmProcess } from './process.ts';
import type { QmpClient, QmpEvent } from './qmp/client.ts';
import type { StderrFile } from './stderr-file.ts';

/** `stop` waits for requests to the drives, and an NBD server may be away for 30 s. */
const PAUSE_TIMEOUT_MS = 40_000;
const QUIT_TIMEOUT_MS = 2_000;
const DRAIN_TIMEOUT_MS = 1_000;
/** The console is read often while a guest boots, seldom later: it is for people, and its ring is large enough. */
const BOOT_DRAINS = 20;
const BOOT_DRAIN_MS = 500;
const LATER_DRAIN_MS = 10_000;

export interface QemuVmParts {
  readonly record: VmRecord;
  readonly process: VmmProcess;
  readonly qmp: QmpClient;
  readonly serial: SerialLog;
  readonly stderr: StderrFile;
  readonly state: 'running' | 'paused';
  /** how long a machine may take to stop or to go on, `ms` */
  readonly pauseTimeoutMs?: number;
  readonly log: Logger;
  /** Removes the run folder and whatever else belonged to the VM. */
  readonly cleanUp: () => Promise<void>;
}

/** One VM that runs under QEMU. */
export class QemuVm implements MicroVm {
  readonly record: VmRecord;
  readonly exited: Promise<VmExit>;
  readonly #parts: QemuVmParts;
  readonly #pid: number;
  #state: VmState;
  /** false when a command was not answered: it may be done still, before the next one */
  #isSure = true;
  #commands: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #drainTimer: NodeJS.Timeout | undefined;
  #detached = false;
  #mappings: Promise<readonly Mapping[]> | undefined;

  constructor(parts: QemuVmParts) {
    this.#parts = parts;
    this.record = parts.record;
    this.#pid = parts.process.identity.pid;
    this.#state = parts.state;
    this.exited = this.#finish();
    this.exited.catch(() => {});
    parts.qmp.onEvent((event) => this.#onEvent(event));
    void parts.qmp.closed.then(() => this.#onSocketClosed());
    this.#scheduleDrain(1);
  }

  get state(): VmState {
    return this.#state;
  }

  pause(): Promise<void> {
    return this.#inOrder('paused', 'stop');
  }

  resume(): Promise<void> {
    return this.#inOrder('running', 'cont');
  }

  privateBytes(): Promise<number> {
    return privateBytes(this.record.process.pid);
  }

  async changedBytes(): Promise<number> {
    return await this.#reading(async () => countPrivate(this.#pid, await this.#memory()));
  }

  async capture(target: CaptureTarget): Promise<void> {
    const done = this.#commands.then(() => this.#capture(target));
    this.#commands = done.catch(() => {});
    await done;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  /** Lets go of the VM, which runs on. */
  detach(): void {
    this.#detached = true;
    clearTimeout(this.#drainTimer);
    this.#parts.qmp.close();
  }

  #onEvent(event: QmpEvent): void {
    // The guest powered off, rebooted or panicked. The machine stands still with its console, which #end reads.
    if (event.name === 'SHUTDOWN') this.#ending ??= this.#end().catch(() => {});
  }

  async #inOrder(wanted: 'running' | 'paused', command: string): Promise<void> {
    const done = this.#commands.then(async () => {
      if (this.#state === wanted && this.#isSure) return;
      if (this.#state === 'exited') throw new AenvError('vm_died', `VM ${this.record.incarnation} has ended`);
      this.#isSure = false;
      await this.#parts.qmp.execute(command, {}, this.#parts.pauseTimeoutMs ?? PAUSE_TIMEOUT_MS);
      this.#isSure = true;
      // Its end may have been seen while the answer was on its way.
      if ((this.#state as VmState) !== 'exited') this.#state = wanted;
    });
    this.#commands = done.catch(() => {});
    await done;
  }

  async #capture({ deviceState, memory }: CaptureTarget): Promise<void> {
    const { record, qmp } = this.#parts;
    if (this.#state === 'running' || !this.#isSure) {
      throw new AenvError('capture_failed', `VM ${record.incarnation} is not paused`);
    }
    await this.#reading(async () => {
      const mappings = await this.#memory();
      await saveDeviceState(qmp, record.runDir, deviceState, () => readMemory(this.#pid, mappings, memory));
    });
  }

  /** Where the memory of the guest is, which never changes. */
  #memory(): Promise<readonly Mapping[]> {
    const { record, qmp } = this.#parts;
    this.#mappings ??= stat(record.memoryBase).then(({ size }) => guestMemory(qmp, this.#pid, record.memoryBase, size));
    this.#mappings.catch(() => {
      this.#mappings = undefined;
    });
    return this.#mappings;
  }

  /** @throws AenvError `vm_died`, `no_space`, or `capture_failed` for what is none */
  async #reading<T>(read: () => Promise<T>): Promise<T> {
    const { record } = this.#parts;
    if (this.#state === 'exited') throw new AenvError('vm_died', `VM ${record.incarnation} has ended`);
    try {
      return await read();
    } catch (error) {
      if ((this.#state as VmState) === 'exited') throw new AenvError('vm_died', `VM ${record.incarnation} has ended`);
      const fault = AenvError.from(error);
      if (fault.code !== 'internal') throw fault;
      const why = error instanceof Error ? error.message : String(error);
      throw new AenvError('capture_failed', `VM ${record.incarnation} could not be captured: ${why}`, { cause: error });
    }
  }

  async #end(): Promise<void> {
    const { process, qmp } = this.#parts;
    await this.#drain();
    if (this.#state !== 'exited') await qmp.execute('quit', {}, QUIT_TIMEOUT_MS).catch(() => {});
    const timeout = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => timeout.resolve('late'), QUIT_TIMEOUT_MS);
    const how = await Promise.race([process.ended, timeout.promise]);
    clearTimeout(timer);
    if (how === 'late' && !(await killAndWait(process.identity))) {
      throw new AenvError('internal', `the process of VM ${this.record.incarnation} cannot be killed`);
    }
    await this.exited;
  }

  /** Runs from the start; goes on when the process is gone. */
  async #finish(): Promise<VmExit> {
    const { process, qmp, serial, stderr, log, cleanUp } = this.#parts;
    const { code, signal } = await process.ended;
    this.#state = 'exited';
    clearTimeout(this.#drainTimer);
    qmp.close();
    const reason = this.#stopping === undefined ? 'died' : 'stopped';
    const lastLines = [await stderr.lastLines(8), await serial.lastLines(20)].filter((text) => text !== '').join('\n');
    try {
      await cleanUp();
    } catch (error) {
      log.error('the run folder of a VM could not be removed', { incarnation: this.record.incarnation, error });
    }
    return { reason, code, signal, lastLines };
  }

  async #onSocketClosed(): Promise<void> {
    if (!this.#detached && this.#state !== 'exited') await endAfterSocket(this.record.process);
  }

  async #drain(): Promise<void> {
    if (this.#state === 'exited') return;
    try {
      const data = await drainConsole(this.#parts.qmp, DRAIN_TIMEOUT_MS);
      if (data.length > 0) await this.#parts.serial.append(data);
      await this.#parts.stderr.trim();
    } catch (error) {
      // The end of the VM is seen elsewhere, and a full disk must not end it.
      if ((this.#state as VmState) === 'exited' || this.#stopping !== undefined) return;
      this.#parts.log.debug('serial console not read', { incarnation: this.record.incarnation, error });
    }
  }

  #scheduleDrain(count: number): void {
    this.#drainTimer = setTimeout(
      () => {
        void this.#drain().then(() => {
          if (this.#state !== 'exited' && !this.#detached) this.#scheduleDrain(count + 1);
        });
      },
      count <= BOOT_DRAINS ? BOOT_DRAIN_MS : LATER_DRAIN_MS,
    );
    this.#drainTimer.unref();
  }
}
