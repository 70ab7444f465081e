import { chown, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { SerialLog } from '../console/serial-log.ts';
import type { MicroVm, VmDriver, VmRecord, VmSpec } from '../contract/micro-vm.ts';
import { checkSpec, qmpSocketPath } from './check-spec.ts';
import { commandLine } from './command-line.ts';
import { confinement } from './confinement.ts';
import { connectQmp } from './connect-qmp.ts';
import { drainConsole } from './console-ring.ts';
import { MAX_DRIVES } from './drives.ts';
import type { QemuInstall } from './install/qemu-install.ts';
import { type Accelerator, MACHINE } from './machine.ts';
import { memoryFile } from './memory-file.ts';
import { adoptProcess, startProcess, type VmmProcess } from './process.ts';
import { QemuVm } from './qemu-vm.ts';
import type { QmpClient } from './qmp/client.ts';
import { isRecord } from './qmp/message.ts';
import { StderrFile } from './stderr-file.ts';
import { openTunToUsers } from './tun-access.ts';

const COMMAND_TIMEOUT_MS = 10_000;

export interface QemuDriverOptions {
  readonly install: QemuInstall;
  /** the answer of `chooseAccelerator` */
  readonly accelerator: Accelerator;
  /** folder for the files that guest memory is mapped from; on a disk, and users of VMs can pass through its parents */
  readonly memoryDir: string;
  readonly log: Logger;
  /** how long QEMU may take until it can be managed, after its start and when it is adopted; default 15,000 `ms` */
  readonly startTimeoutMs?: number;
}

/** VMs as QEMU processes, each under a user of its own in the network namespace of its slot. Needs root. */
export function createQemuDriver(options: QemuDriverOptions): VmDriver {
  return new QemuDriver(options);
}

class QemuDriver implements VmDriver {
  readonly kind = 'qemu';
  readonly driveKinds = ['file', 'nbd', 'device'] as const;
  readonly maxDrives = MAX_DRIVES;
  readonly build: VmDriver['build'];
  readonly #options: QemuDriverOptions;
  readonly #vms = new Set<QemuVm>();

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.build = { version: options.install.version, accelerator: options.accelerator, machine: MACHINE };
  }

  async start(spec: VmSpec, signal?: AbortSignal): Promise<MicroVm> {
    signal?.throwIfAborted();
    checkSpec(spec);
    try {
      return await this.#start(spec, signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw AenvError.from(error, `VM ${spec.incarnation} could not be started`);
    }
  }

  async #start(spec: VmSpec, signal?: AbortSignal): Promise<MicroVm> {
    await openTunToUsers(this.#options.log);
    await using undo = new Rollback();
    await makeRunDir(spec, undo);
    const { install, accelerator, memoryDir } = this.#options;
    const memory = await memoryFile(memoryDir, spec, install);
    const removeMemory = () => rm(memory.path, { force: true });
    if (memory.ownedByVm) undo.add(removeMemory);

    const stderr = new StderrFile(spec.runDir);
    const serial = new SerialLog(spec.serialLog);
    const qmpSocket = qmpSocketPath(spec.runDir);
    const process = await this.#spawn(
      [
        ...(await confinement(spec.network, accelerator)),
        install.system,
        ...commandLine(spec, { install, accelerator, memory, qmpSocket }),
      ],
      stderr,
    );
    undo.add(async () => {
      await killAndWait(process.identity);
    });
    const record: VmRecord = {
      kind: 'qemu',
      incarnation: spec.incarnation,
      process: process.identity,
      runDir: spec.runDir,
      serialLog: spec.serialLog,
    };
    let qmp: QmpClient | undefined;
    try {
      qmp = await connectQmp(qmpSocket, process.ended, this.#startTimeoutMs, signal);
      undo.add(() => qmp?.close());
      const status = await queryStatus(qmp);
      if (status !== 'running') throw new AenvError('boot_failed', `QEMU is in state '${status}' after its start`);
    } catch (error) {
      signal?.throwIfAborted();
      if (qmp !== undefined) await serial.append(await drainConsole(qmp, 1_000).catch(() => Buffer.alloc(0)));
      throw await bootError(spec, stderr, serial, error);
    }
    // QEMU has it open; without a name nothing is left of it whatever happens.
    if (memory.ownedByVm) await removeMemory();
    undo.keep();
    return this.#watch(record, process, qmp, 'running');
  }

  async adopt(record: VmRecord): Promise<MicroVm | undefined> {
    const removeRunDir = () => rm(record.runDir, { recursive: true, force: true });
    if (!(await isAlive(record.process))) {
      await removeRunDir();
      return undefined;
    }
    const qmp = await connectQmp(qmpSocketPath(record.runDir), undefined, this.#startTimeoutMs);
    const status = await queryStatus(qmp);
    if (status === 'running' || status === 'paused') {
      return this.#watch(record, adoptProcess(record.process, qmp.closed), qmp, status);
    }
    await new SerialLog(record.serialLog).append(await drainConsole(qmp, 1_000));
    qmp.close();
    await killAndWait(record.process);
    await removeRunDir();
    return undefined;
  }

  async close(): Promise<void> {
    for (const vm of this.#vms) vm.detach();
    this.#vms.clear();
  }

  get #startTimeoutMs(): number {
    return this.#options.startTimeoutMs ?? 15_000;
  }

  async #spawn(argv: [string, ...string[]], stderr: StderrFile): Promise<VmmProcess> {
    await using output = await stderr.create();
    return await startProcess(argv, this.#options.install.env, output.fd);
  }

  #watch(record: VmRecord, process: VmmProcess, qmp: QmpClient, state: 'running' | 'paused'): QemuVm {
    const vm = new QemuVm({
      record,
      process,
      qmp,
      state,
      serial: new SerialLog(record.serialLog),
      stderr: new StderrFile(record.runDir),
      log: this.#options.log,
      cleanUp: () => rm(record.runDir, { recursive: true, force: true }),
    });
    this.#vms.add(vm);
    void vm.exited.finally(() => this.#vms.delete(vm)).catch(() => {});
    return vm;
  }
}

async function makeRunDir(spec: VmSpec, undo: Rollback): Promise<void> {
  await mkdir(dirname(spec.runDir), { recursive: true, mode: 0o711 });
  try {
    await mkdir(spec.runDir, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    throw new AenvError('boot_failed', `VM ${spec.incarnation}: its run folder ${spec.runDir} is in use`, {
      cause: error,
    });
  }
  undo.add(() => rm(spec.runDir, { recursive: true, force: true }));
  await chown(spec.runDir, spec.network.uid, spec.network.uid);
}

async function queryStatus(qmp: QmpClient): Promise<string> {
  const answer = await qmp.execute('query-status', {}, COMMAND_TIMEOUT_MS);
  return isRecord(answer) && typeof answer.status === 'string' ? answer.status : 'unknown';
}

async function bootError(spec: VmSpec, stderr: StderrFile, serial: SerialLog, error: unknown): Promise<AenvError> {
  const cause = AenvError.from(error);
  if (cause.code === 'host_command_missing' || cause.code === 'no_space') return cause;
  const lines = [await stderr.lastLines(8), await serial.lastLines(20)].filter((text) => text !== '').join('\n');
  return new AenvError('boot_failed', `VM ${spec.incarnation} did not start: ${lines === '' ? cause.message : lines}`, {
    cause: error,
  });
}
