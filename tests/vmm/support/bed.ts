import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { isAlive, killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import type { ContractHarness } from '@aenv/vmm/contract/harness.ts';
import type { MicroVm, VmDriver, VmRecord, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import { createQemuDriver } from '@aenv/vmm/qemu/driver.ts';
import { ensureQemu } from '@aenv/vmm/qemu/install/ensure.ts';
import type { QemuInstall, QemuPreference } from '@aenv/vmm/qemu/install/qemu-install.ts';
import { recordBoot } from '../../harness/boots.ts';
import { dial } from './dial.ts';
import { type TestGuest, testGuest } from './guest.ts';
import { TestSlots } from './slots.ts';

/** What the tests share with an installed aenv, since it takes minutes to fetch and build. */
export const ASSETS = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';

/** Real QEMU on this machine, with folders and slots of the test's own. */
export class TestBed implements ContractHarness {
  readonly patience = { boot: 40_000, end: 10_000, silence: 500 };
  readonly root: string;
  readonly install: QemuInstall;
  readonly guest: TestGuest;
  readonly #slots = new TestSlots();
  readonly #drivers: VmDriver[] = [];
  readonly #processes: ProcessIdentity[] = [];
  #count = 0;

  private constructor(root: string, install: QemuInstall, guest: TestGuest) {
    this.root = root;
    this.install = install;
    this.guest = guest;
  }

  static async open(prefer: QemuPreference = 'auto'): Promise<TestBed> {
    const install = await ensureQemu({ assetsDir: ASSETS, log: silentLogger, prefer });
    const guest = await testGuest(ASSETS);
    const root = await mkdtemp(join(tmpdir(), 'vmmt-'));
    // VMs run as users of their own and must get through to their folders.
    await chmod(root, 0o711);
    return new TestBed(root, install, guest);
  }

  get memoryDir(): string {
    return join(this.root, 'memory');
  }

  async openDriver(options: { readonly startTimeoutMs?: number } = {}): Promise<VmDriver> {
    const { install, memoryDir } = this;
    const driver = createQemuDriver({ install, accelerator: 'tcg', memoryDir, log: silentLogger, ...options });
    this.#drivers.push(driver);
    const start = driver.start.bind(driver);
    // Remembered, so that a failed test leaves no VM behind.
    return Object.assign(driver, {
      start: async (spec: VmSpec, signal?: AbortSignal) => {
        const vm = await start(spec, signal);
        this.remember(vm.record.process);
        return vm;
      },
    });
  }

  /** Ends this process when the bed is closed. */
  remember(identity: ProcessIdentity): void {
    this.#processes.push(identity);
  }

  /** @param args what the guest shall do, as options on its kernel command line */
  async makeSpec(args = '', options: Partial<VmSpec> = {}): Promise<VmSpec> {
    const incarnation = `test${++this.#count}`;
    return {
      incarnation,
      runDir: join(this.root, 'run', incarnation),
      serialLog: join(this.root, 'serial', `${incarnation}.log`),
      cpuCount: 1,
      memoryMb: 128,
      kernel: this.guest.kernel.path,
      initramfs: this.guest.initramfs,
      kernelArgs: `${this.guest.kernelArgs} ${args}`,
      drives: [],
      network: await this.#slots.make(),
      ...options,
    };
  }

  async dial(spec: VmSpec) {
    return dial(spec.network);
  }

  async crash(vm: MicroVm): Promise<void> {
    process.kill(vm.record.process.pid, 'SIGKILL');
  }

  processExists(record: VmRecord): Promise<boolean> {
    return isAlive(record.process);
  }

  /** Run folders, memory files of single VMs and processes that still exist. */
  async leftovers(): Promise<string[]> {
    const names = async (folder: string) => readdir(join(this.root, folder)).catch(() => []);
    const memory = (await names('memory')).filter((name) => !/^zero-\d+\.mem$/.test(name));
    const processes: string[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (text.includes(this.root)) processes.push(`process ${pid}`);
    }
    return [...(await names('run')), ...memory, ...processes];
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers) await driver.close();
    for (const identity of this.#processes) await killAndWait(identity);
    await this.#slots.close();
    await this.#recordBoots();
    await rm(this.root, { recursive: true, force: true });
  }

  async #recordBoots(): Promise<void> {
    const folder = join(this.root, 'serial');
    for (const name of await readdir(folder).catch(() => [])) {
      const bootId = /^boot_id ([0-9a-f-]{36})/m.exec(await readFile(join(folder, name), 'utf8'))?.[1];
      if (bootId !== undefined) await recordBoot(bootId);
    }
  }
}
