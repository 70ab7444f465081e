import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { type EnsureQemuOptions, ensureQemu } from './ensure.ts';
import { versionOfInstall } from './packages-file.ts';

/** A program that says it is this version of QEMU. */
async function program(path: string, version: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho "QEMU emulator version ${version} (Debian)"\n`);
  await chmod(path, 0o755);
}

/** A host whose own QEMU and whose suites have these versions; a suite that is not named cannot be reached. */
async function host(t: TestContext, system: string | undefined, suites: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), 'qemu-'));
  t.after(() => rm(root, { recursive: true }));
  if (system !== undefined) {
    await program(join(root, 'bin', 'qemu-system-x86_64'), system);
  }
  const warnings: string[] = [];
  const downloads: string[] = [];
  const options: EnsureQemuOptions = {
    assetsDir: join(root, 'assets'),
    log: { ...silentLogger, warn: (message) => warnings.push(message) },
    searchPath: join(root, 'bin'),
    codename: 'bookworm',
    async download(suite) {
      downloads.push(suite);
      const version = suites[suite];
      if (version === undefined) throw new Error(`no network to ${suite}`);
      return [{ name: 'qemu-system-x86', version: `1:${version}`, path: await debOf(root, suite, version) }];
    },
  };
  return { root, options, warnings, downloads };
}

async function debOf(root: string, suite: string, version: string): Promise<string> {
  const tree = await mkdtemp(join(root, `deb-${suite}-`));
  await program(join(tree, 'usr/bin/qemu-system-x86_64'), version);
  await program(join(tree, 'usr/bin/qemu-img'), version);
  await program(join(tree, 'usr/bin/qemu-nbd'), version);
  for (const file of ['usr/share/qemu/qboot.rom', 'usr/share/qemu/skiboot.lid']) {
    await mkdir(join(tree, file, '..'), { recursive: true });
    await writeFile(join(tree, file), 'firmware');
  }
  await mkdir(join(tree, 'lib/x86_64-linux-gnu'), { recursive: true });
  await writeFile(join(tree, 'lib/x86_64-linux-gnu/libfuse3.so.3'), 'library');
  await mkdir(join(tree, 'DEBIAN'));
  const control = `Package: qemu-system-x86\nVersion: 1:${version}\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: x\n`;
  await writeFile(join(tree, 'DEBIAN/control'), control);
  const path = `${tree}.deb`;
  await run(['dpkg-deb', '--build', '-Znone', tree, path]);
  return path;
}

test('the host’s own QEMU is taken where it is new enough', async (t) => {
  const { root, options, warnings, downloads } = await host(t, '8.2.0', {});
  const install = await ensureQemu(options);
  assert.equal(install.system, join(root, 'bin', 'qemu-system-x86_64'));
  assert.deepEqual([install.version, warnings, downloads], ['8.2.0', [], []]);
});

test('else the backports are unpacked beside it, with what VMs need and nothing more', async (t) => {
  const { options, warnings } = await host(t, '7.2.22', { 'bookworm-backports': '10.0.2' });
  const install = await ensureQemu(options);
  const folder = join(options.assetsDir, 'qemu-bookworm-backports');
  assert.equal(install.version, '10.0.2');
  assert.equal(install.system, join(folder, 'bin', 'qemu-system-x86_64'));
  assert.equal(install.dataDir, join(folder, 'share'));
  assert.deepEqual(install.env, {
    QEMU_MODULE_DIR: join(folder, 'modules'),
    LD_LIBRARY_PATH: join(folder, 'lib'),
  });
  assert.deepEqual((await readdir(join(folder, 'bin'))).sort(), ['qemu-system-x86_64']);
  assert.deepEqual(await readdir(join(folder, 'share')), ['qboot.rom']);
  assert.deepEqual(await readdir(join(folder, 'lib')), ['libfuse3.so.3']);
  assert.deepEqual(warnings, []);
  assert.deepEqual(await readdir(options.assetsDir), ['qemu-bookworm-backports'], 'no temporary folder is left');
});

test('what was unpacked is used again without the network, and anew when it does not run any more', async (t) => {
  const { options, downloads } = await host(t, undefined, { 'bookworm-backports': '10.0.2' });
  const first = await ensureQemu(options);
  const folder = join(options.assetsDir, 'qemu-bookworm-backports');
  assert.equal(await versionOfInstall(folder), '10.0.2');
  assert.equal(await versionOfInstall(options.assetsDir), undefined);
  await utimes(folder, 0, 0);
  await ensureQemu(options);
  assert.equal(downloads.length, 1);
  assert.ok((await stat(folder)).mtimeMs > 0, 'it counts as used');
  await writeFile(first.system, '#!/bin/sh\nexit 127\n');
  assert.equal((await ensureQemu(options)).version, '10.0.2');
  assert.equal(downloads.length, 2);
  assert.deepEqual(await readdir(options.assetsDir), ['qemu-bookworm-backports']);
});

test('several at once end with one whole install', async (t) => {
  const { options } = await host(t, undefined, { 'bookworm-backports': '10.0.2' });
  const installs = await Promise.all([1, 2, 3, 4].map(() => ensureQemu(options)));
  assert.equal(new Set(installs.map(({ system }) => system)).size, 1);
  assert.deepEqual(await readdir(options.assetsDir), ['qemu-bookworm-backports']);
});

test('an old version is the last resort, and never quietly', async (t) => {
  const system = await host(t, '7.2.22', {});
  assert.equal((await ensureQemu(system.options)).version, '7.2.22');
  assert.equal(system.warnings.length, 1);
  const release = await host(t, undefined, { bookworm: '7.2.22' });
  const install = await ensureQemu(release.options);
  assert.equal(install.system, join(release.options.assetsDir, 'qemu-bookworm', 'bin', 'qemu-system-x86_64'));
  assert.deepEqual(release.downloads, ['bookworm-backports', 'bookworm']);
  assert.equal(release.warnings.length, 1);
});

test('a preference leaves the others aside', async (t) => {
  const { options, downloads } = await host(t, '8.2.0', { bookworm: '7.2.22', 'bookworm-backports': '10.0.2' });
  assert.equal((await ensureQemu({ ...options, prefer: 'release' })).version, '7.2.22');
  assert.equal((await ensureQemu({ ...options, prefer: 'backports' })).version, '10.0.2');
  assert.deepEqual(downloads, ['bookworm', 'bookworm-backports']);
});

test('without any the error says why each was not to be had, and nothing is left', async (t) => {
  const { options } = await host(t, undefined, {});
  await assert.rejects(ensureQemu(options), {
    code: 'qemu_missing',
    message: /no network to bookworm-backports; no network to bookworm/,
  });
  assert.deepEqual(await readdir(options.assetsDir), []);
});
