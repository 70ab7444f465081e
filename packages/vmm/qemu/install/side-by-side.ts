import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DebFile } from '@aenv/platform/debian/contract.ts';
import { unpackDeb } from '@aenv/platform/debian/unpack.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { markUsed } from '@aenv/platform/files/mark-used.ts';
import { identify } from '@aenv/platform/process/identity.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { collectFiles } from './collect-files.ts';
import { PACKAGES, QEMU_PACKAGE } from './packages-file.ts';
import type { QemuInstall } from './qemu-install.ts';
import { askVersion } from './version.ts';

/** The package that holds the program; what else it needs comes as dependencies. */
export const QEMU_PACKAGES: readonly string[] = [QEMU_PACKAGE];

export interface SideBySideRequest {
  /** the install is the folder `qemu-SUITE` in it, complete or absent */
  readonly assetsDir: string;
  readonly suite: string;
  /** fetches the packages with those dependencies that the host lacks */
  readonly download: (suite: string, packages: readonly string[]) => Promise<readonly DebFile[]>;
  readonly signal?: AbortSignal;
}

/** An install that was made before and runs, or undefined. It counts as used now. */
export async function openSideBySide(
  assetsDir: string,
  suite: string,
  signal?: AbortSignal,
): Promise<QemuInstall | undefined> {
  const folder = installFolder(assetsDir, suite);
  try {
    await readFile(join(folder, PACKAGES));
    const install = await inspect(folder, signal);
    await markUsed(folder);
    return install;
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/**
 * Unpacks QEMU of a suite beside whatever the host has, which is left alone. Two processes may do so at once: the folder
 * is renamed to its place as a whole, the second one takes what the first one made.
 * @throws AenvError `qemu_missing` when the packages give nothing that runs here
 */
export async function makeSideBySide(request: SideBySideRequest): Promise<QemuInstall> {
  const { assetsDir, suite, signal } = request;
  await mkdir(assetsDir, { recursive: true });
  const debs = await request.download(suite, QEMU_PACKAGES);
  await using undo = new Rollback();
  // A collection finds by its name what a process that was killed has left.
  const self = await identify(process.pid);
  const work = await mkdtemp(join(assetsDir, `.work-${process.pid}-${self?.startTime ?? 0}-`));
  undo.add(() => rm(work, { recursive: true, force: true }));
  const staged = join(work, 'install');
  // The C library belongs to the host's loader, another one cannot stand in for it.
  for (const deb of debs.filter(({ name }) => name !== 'libc6')) await unpackDeb(deb.path, join(work, 'root'), signal);
  await collectFiles(join(work, 'root'), staged);
  await inspect(staged, signal);
  await writeDurable(
    join(staged, PACKAGES),
    `${JSON.stringify({ suite, packages: debs.map(({ name, version }) => ({ name, version })) }, undefined, 2)}\n`,
  );
  // Virtual machines run it under users of their own.
  await chmod(staged, 0o755);
  const folder = installFolder(assetsDir, suite);
  if (!(await moveInto(staged, folder))) {
    const other = await openSideBySide(assetsDir, suite, signal);
    if (other !== undefined) return other;
    // What is there does not run any more, for example because the host lost a library that it used.
    await rename(folder, join(work, 'broken'));
    await moveInto(staged, folder);
  }
  return inspect(folder, signal);
}

async function moveInto(staged: string, folder: string): Promise<boolean> {
  try {
    await rename(staged, folder);
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

function installFolder(assetsDir: string, suite: string): string {
  return join(assetsDir, `qemu-${suite}`);
}

async function inspect(folder: string, signal?: AbortSignal): Promise<QemuInstall> {
  const system = join(folder, 'bin', 'qemu-system-x86_64');
  const env = { QEMU_MODULE_DIR: join(folder, 'modules'), LD_LIBRARY_PATH: join(folder, 'lib') };
  const firmware = await readdir(join(folder, 'share'));
  const version = await askVersion(system, env, signal);
  if (version === undefined || !firmware.includes('qboot.rom')) {
    throw new AenvError('qemu_missing', `the QEMU packages in ${folder} are not complete`);
  }
  return { version, system, dataDir: join(folder, 'share'), env };
}
