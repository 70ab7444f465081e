import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DebianOptions, PackageRecord } from '@aenv/platform/debian/contract.ts';
import { downloadPackages, queryPackages } from '@aenv/platform/debian/download.ts';
import { unpackDeb } from '@aenv/platform/debian/unpack.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { AssetCache, Recipe } from '../cache/asset-cache.ts';
import { digestInputs, sourceInputs } from '../cache/inputs.ts';
import { writeCpio } from '../initramfs/cpio.ts';
import { modulesInOrder } from './modules.ts';
import { extractVmlinux } from './vmlinux.ts';

const SUITE = 'bookworm';
const METAPACKAGE = 'linux-image-cloud-amd64';
/**
 * The devices that both VMMs offer a guest, and the file system of the tools drive; ext4 is built in. No virtio_rng: the
 * kernel seeds itself from the processor at boot, and the host sends a seed before any user code runs. With tcp_diag the guest
 * breaks connections of the machine that it continues.
 */
const MODULES = ['virtio_mmio', 'virtio_blk', 'virtio_net', 'erofs', 'tcp_diag'];

const FILES = { vmlinux: 0o644, 'modules.cpio': 0o644 };

export interface KernelFiles {
  readonly vmlinux: string;
  /** archive with the modules and `/modules`, the order in which they are loaded */
  readonly modules: string;
  /** release as uname(1) gives it, for example `6.1.0-57-cloud-amd64` */
  readonly version: string;
  readonly digest: string;
}

/** The package that a folder's kernel comes from, so that the cache is used without asking apt. */
interface KernelRecord {
  readonly name: string;
  readonly version: string;
}

/**
 * Debian's kernel for virtual machines: fetched and unpacked, never installed. A kernel that is there stays in use; a
 * newer one is only looked for when it is missing.
 * @throws AenvError `host_unsupported` on another architecture, `asset_failed`, `host_command_failed`
 */
export async function buildKernel(cache: AssetCache, assetsDir: string, options: DebianOptions): Promise<KernelFiles> {
  if (process.arch !== 'x64') {
    throw new AenvError('host_unsupported', `there is no guest kernel for ${process.arch} yet`, {
      remediation: 'Run aenv on an x86-64 machine.',
    });
  }
  const recordFile = join(assetsDir, 'kernel.json');
  const sources = await sourceInputs(import.meta.dirname, join(import.meta.dirname, '../initramfs'));
  const known = parseRecord(await readFile(recordFile, 'utf8').catch(() => ''));
  if (known !== undefined) {
    const recipe = recipeOf(known, sources, options);
    if (await cache.has(recipe)) return kernelFiles(known, recipe.digest, await cache.get(recipe));
  }
  const record = await newestKernel(options);
  const recipe = recipeOf(record, sources, options);
  const entry = await cache.get(recipe);
  await writeDurable(recordFile, JSON.stringify(record));
  return kernelFiles(record, recipe.digest, entry);
}

function recipeOf(record: KernelRecord, sources: Readonly<Record<string, Uint8Array>>, options: DebianOptions): Recipe {
  return {
    kind: 'kernel',
    files: FILES,
    digest: digestInputs({ ...sources, package: `${record.name} ${record.version}`, modules: MODULES.join(' ') }),
    async build(entry, scratch) {
      const request = { suite: SUITE, packages: [record.name], withDependencies: false };
      const [deb] = await downloadPackages(request, options);
      if (deb?.version !== record.version) {
        throw new AenvError('asset_failed', `${record.name} changed while it was fetched: now ${deb?.version}`);
      }
      await unpackDeb(deb.path, scratch, options.signal);
      const release = releaseOf(record);
      await writeFile(
        join(entry, 'vmlinux'),
        extractVmlinux(await readFile(join(scratch, 'boot', `vmlinuz-${release}`))),
      );
      const modules = await modulesInOrder(join(scratch, 'lib/modules', release), MODULES);
      const names = modules.map(({ name }) => `lib/${name}.ko`);
      const archive = writeCpio([
        { kind: 'folder', path: 'lib', mode: 0o755 },
        ...modules.map(({ data }, index) => ({ kind: 'file', path: names[index] ?? '', mode: 0o644, data }) as const),
        { kind: 'file', path: 'modules', mode: 0o644, data: Buffer.from(names.map((name) => `/${name}\n`).join('')) },
      ]);
      await writeFile(join(entry, 'modules.cpio'), archive);
    },
  };
}

/** The package that the metapackage of the suite depends on now. */
async function newestKernel(options: DebianOptions): Promise<KernelRecord> {
  const [meta] = await queryPackages({ suite: SUITE, packages: [METAPACKAGE] }, options);
  const name = /(?:^|[ ,|])(linux-image-[0-9][\w.+-]*)/.exec(meta?.depends ?? '')?.[1];
  if (name === undefined) throw new AenvError('asset_failed', `${METAPACKAGE} depends on no kernel package`);
  const [image]: readonly PackageRecord[] = await queryPackages({ suite: SUITE, packages: [name] }, options);
  if (image === undefined) throw new AenvError('asset_failed', `${name} is not in ${SUITE}`);
  return { name, version: image.version };
}

function releaseOf(record: KernelRecord): string {
  return record.name.replace(/^linux-image-/, '');
}

function kernelFiles(record: KernelRecord, digest: string, entry: string): KernelFiles {
  return {
    vmlinux: join(entry, 'vmlinux'),
    modules: join(entry, 'modules.cpio'),
    version: releaseOf(record),
    digest,
  };
}

function parseRecord(text: string): KernelRecord | undefined {
  try {
    const { name, version } = JSON.parse(text) as Record<string, unknown>;
    return typeof name === 'string' && typeof version === 'string' ? { name, version } : undefined;
  } catch {
    return undefined;
  }
}
