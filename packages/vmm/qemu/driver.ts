import { chown, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { SerialLog } from '../console/serial-log.ts';
import type { MicroVm, VmDriver, VmImage, VmRecord, VmShape, VmSpec } from '../contract/micro-vm.ts';
import { loadDeviceState } from './capture/device-state.ts';
import { checkKernelArgs, checkShape, qmpSocketPath } from './check-spec.ts';
import { bootCommandLine, type CommandLineParts, restoreCommandLine } from './command-line.ts';
import { confinement } from './confinement.ts';
import { connectQmp } from './connect-qmp.ts';
import { drainConsole } from './console-ring.ts';
import { MAX_DRIVES } from './drives.ts';
import type { QemuInstall } from './install/qemu-install.ts';
import { type Accelerator, MACHINE } from './machine.ts';
import { baseAsMemory, type MemoryFile, memoryFile } from './memory/memory-file.ts';
import { writeMemory } from './memory/write-memory.ts';
import { adoptProcess, startProcess, type VmmProcess } from './process.ts';
import { QemuVm } from './qemu-vm.ts';
import type { QmpClient } from './qmp/client.ts';
import { isRecord } from './qmp/message.ts';
import { StderrFile } from './stderr-file.ts';
import { openTunToUsers } from './tun-access.ts';

const COMMAND_TIMEOUT_MS = 10_000;
const MIB = 1024 * 1024;

/** What differs between a boot and a restore. */
interface Launch {
  readonly failure: 'boot_failed' | 'restore_failed';
  readonly memory: () => Promise<MemoryFile>;
  readonly arguments: (parts: CommandLineParts) => string[];
  /** Brings the VM from where its QEMU can be managed to the state that the caller gets it in. */
  readonly ready: (qmp: QmpClient, pid: number) => Promise<'running' | 'paused'>;
}

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
    checkShape(spec);
    checkKernelArgs(spec.kernelArgs);
    const { install, memoryDir } = this.#options;
    return await this.#launch(spec, signal, {
      failure: 'boot_failed',
      memory: () => memoryFile(memoryDir, spec, install),
      arguments: (parts) => bootCommandLine(spec, parts),
      async ready(qmp) {
        const status = await queryStatus(qmp);
        if (status !== 'running') throw new AenvError('boot_failed', `QEMU is in state '${status}' after its start`);
        return 'running';
      },
    });
  }

  async restore(shape: VmShape, image: VmImage, signal?: AbortSignal): Promise<MicroVm> {
    signal?.throwIfAborted();
    checkShape(shape);
    const { install } = this.#options;
    return await this.#launch(shape, signal, {
      failure: 'restore_failed',
      memory: () => baseAsMemory(image.memoryBase, shape, install),
      arguments: (parts) => restoreCommandLine(shape, parts),
      async ready(qmp, pid) {
        const { delta } = image;
        if (delta !== undefined) await writeMemory(pid, image.memoryBase, shape.memoryMb * MIB, delta);
        await loadDeviceState(qmp, shape.runDir, shape.network.uid, image.deviceState);
        return 'paused';
      },
    });
  }

  async #launch(shape: VmShape, signal: AbortSignal | undefined, way: Launch): Promise<MicroVm> {
    try {
      return await this.#process(shape, signal, way);
    } catch (error) {
      signal?.throwIfAborted();
      throw AenvError.from(error, `VM ${shape.incarnation} could not be started`);
    }
  }

  async #process(shape: VmShape, signal: AbortSignal | undefined, way: Launch): Promise<MicroVm> {
    await openTunToUsers(this.#options.log);
    await using undo = new Rollback();
    await makeRunDir(shape, undo);
    const { install, accelerator } = this.#options;
    const memory = await way.memory();
    const removeMemory = () => rm(memory.path, { force: true });
    if (memory.ownedByVm) undo.add(removeMemory);

    const stderr = new StderrFile(shape.runDir);
    const serial = new SerialLog(shape.serialLog);
    const qmpSocket = qmpSocketPath(shape.runDir);
    const process = await this.#spawn(
      [
        ...(await confinement(shape.network, accelerator)),
        install.system,
        ...way.arguments({ install, accelerator, memory, qmpSocket }),
      ],
      stderr,
    );
    undo.add(async () => {
      await killAndWait(process.identity);
    });
    const record: VmRecord = {
      kind: 'qemu',
      incarnation: shape.incarnation,
      process: process.identity,
      runDir: shape.runDir,
      serialLog: shape.serialLog,
      memoryBase: memory.path,
      build: this.build,
    };
    let qmp: QmpClient | undefined;
    let state: 'running' | 'paused';
    try {
      qmp = await connectQmp(qmpSocket, process.ended, this.#startTimeoutMs, signal);
      undo.add(() => qmp?.close());
      state = await way.ready(qmp, process.identity.pid);
      signal?.throwIfAborted();
    } catch (error) {
      signal?.throwIfAborted();
      if (qmp !== undefined) await serial.append(await drainConsole(qmp, 1_000).catch(() => Buffer.alloc(0)));
      throw await launchError(way.failure, shape, stderr, serial, error);
    }
    // QEMU has it open; without a name nothing is left of it whatever happens.
    if (memory.ownedByVm) await removeMemory();
    undo.keep();
    return this.#watch(record, process, qmp, state);
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
      // One whose record does not say is of a version that only took over its own.
      return this.#watch({ build: this.build, ...record }, adoptProcess(record.process, qmp.closed), qmp, status);
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

async function makeRunDir(spec: VmShape, undo: Rollback): Promise<void> {
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

async function launchError(
  code: Launch['failure'],
  { incarnation }: VmShape,
  stderr: StderrFile,
  serial: SerialLog,
  error: unknown,
): Promise<AenvError> {
  const cause = AenvError.from(error);
  if (!['internal', 'vm_died', code].includes(cause.code)) return cause;
  const said = [await stderr.lastLines(8), await serial.lastLines(20)].filter((text) => text !== '').join('\n');
  const why =
    code === 'boot_failed' && said !== '' ? said : [cause.message, said].filter((text) => text !== '').join('\n');
  return new AenvError(code, `VM ${incarnation} did not start: ${why}`, { cause: error });
}
