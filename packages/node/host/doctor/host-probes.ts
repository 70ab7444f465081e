import { readFile, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatCidr } from '@aenv/network/addresses/ipv4.ts';
import { chooseRange, DEFAULT_POOL, parsePool } from '@aenv/network/addresses/range-choice.ts';
import { checkNetworkHost } from '@aenv/network/host/check.ts';
import { readTaken } from '@aenv/network/host/taken.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import { missingPackages } from '@aenv/platform/debian/packages.ts';
import { assertSearchable } from '@aenv/platform/files/reachable.ts';
import { openSideBySide } from '@aenv/vmm/qemu/install/side-by-side.ts';
import { findSystemQemu } from '@aenv/vmm/qemu/install/system.ts';
import { askVersion, isAtLeast, SAFE_VERSION } from '@aenv/vmm/qemu/install/version.ts';
import { z } from 'zod';
import { readPair } from '../../certificates/read-pair.ts';
import type { Config } from '../../config/schema.ts';
import { assertPortFree } from '../daemon/port.ts';
import { findDaemon, isHealthy } from '../daemon/state.ts';
import { HOST_PACKAGES } from '../setup/host-packages.ts';
import type { AcceleratorFound, DiskFound, HostProbes, QemuFound } from './probes.ts';

/** Names of file systems by the magic number that statfs(2) gives. */
const FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0xef53, 'ext4'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x01021994, 'tmpfs'],
  [0x794c7630, 'overlayfs'],
  [0x2fc12fc1, 'zfs'],
  [0x6969, 'nfs'],
]);

/** Asks this host. */
export function hostProbes(config: Config): HostProbes {
  return {
    uid: process.getuid?.() ?? -1,
    arch: process.arch,
    release: () => hostCodename(),
    missingPackages: () => missingPackages(HOST_PACKAGES),
    network: () => checkNetworkHost(),
    range: async () => formatCidr(chooseRange(parsePool(config.network.cidr ?? DEFAULT_POOL), await readTaken())),
    qemu: () => findQemu(config),
    accelerator: () => findAccelerator(config),
    reachable: async () => {
      for (const folder of [config.home, config.assets]) await assertSearchable(await existingFolder(folder));
    },
    disk: () => findDisk(config.home),
    availableMemory,
    mode: async (path) => {
      const found = await stat(path).catch(() => undefined);
      return found === undefined ? undefined : found.mode & 0o7777;
    },
    certificate: async (files) => (await readPair(files)).leaf,
    daemon: async () => {
      const state = await findDaemon(config.runtime);
      if (state === undefined) return undefined;
      return { url: state.url, pid: state.process.pid, healthy: await isHealthy(state.url) };
    },
    portFree: assertPortFree,
  };
}

/** The one that VMs would run with, in the order that `ensureQemu` has; nothing is fetched. */
async function findQemu(config: Config): Promise<QemuFound | undefined> {
  const own = config.vmm.qemu;
  if (own !== undefined) {
    const version = await askVersion(own, {});
    return version === undefined ? undefined : { version, path: own, origin: 'configuration' };
  }
  const system = await findSystemQemu(process.env.PATH ?? '');
  const host: QemuFound | undefined = system && { version: system.version, path: system.system, origin: 'host' };
  if (host !== undefined && isAtLeast(host.version, SAFE_VERSION)) return host;
  const codename = await hostCodename();
  const backports = await openSideBySide(config.assets, `${codename}-backports`);
  if (backports !== undefined) return { version: backports.version, path: backports.system, origin: 'backports' };
  if (host !== undefined) return host;
  const release = await openSideBySide(config.assets, codename);
  return release && { version: release.version, path: release.system, origin: 'release' };
}

/** What the VMM room writes after its test boot; `key` begins with the boot id of the host. */
const triedSchema = z.object({ key: z.string(), accelerator: z.enum(['kvm', 'tcg']), reason: z.string() });

async function findAccelerator(config: Config): Promise<AcceleratorFound> {
  const mode = config.vmm.accelerator;
  if (mode !== 'auto') return { accelerator: mode, reason: 'the configuration says so' };
  if ((await stat('/dev/kvm').catch(() => undefined)) === undefined) {
    return { accelerator: 'tcg', reason: 'this host has no /dev/kvm' };
  }
  const unknown = { accelerator: undefined, reason: '/dev/kvm is there; a test boot at the next start decides' };
  try {
    const tried = triedSchema.parse(JSON.parse(await readFile(join(config.assets, 'accelerator.json'), 'utf8')));
    const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
    return tried.key.startsWith(bootId) ? { accelerator: tried.accelerator, reason: tried.reason } : unknown;
  } catch {
    return unknown;
  }
}

async function findDisk(home: string): Promise<DiskFound> {
  const folder = await existingFolder(home);
  const found = await statfs(folder);
  const type = FILE_SYSTEMS.get(found.type) ?? `a file system of type 0x${found.type.toString(16)}`;
  return { folder, freeBytes: found.bavail * found.bsize, type };
}

async function availableMemory(): Promise<number> {
  const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1];
  return Number(kib ?? 0) * 1024;
}

/** The folder, or the first one above it that exists. */
async function existingFolder(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    if (at === dirname(at) || (await stat(at).catch(() => undefined)) !== undefined) return at;
  }
}
