import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { layDebs } from './deb-tree.ts';

const assetsDir = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';
const EPOCH = Date.UTC(2026, 0, 1) / 1000;

test('packages are unpacked with the libraries that they need, and their modules compiled for the image', async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), 'aenv-debs-'));
  t.after(() => rm(scratch, { recursive: true, force: true }));
  const root = join(scratch, 'root');
  await mkdir(root);
  await layDebs(root, {
    packages: ['python3-six', 'liblapack3'],
    installed: new Set(['libc6', 'libgcc-s1']),
    aptDir: join(assetsDir, 'apt'),
    ...{ epoch: EPOCH, log: silentLogger },
  });
  const triplets = (await readdir(join(root, 'usr/lib'))).filter((name) => name.endsWith('-linux-gnu'));
  const lib = join(root, 'usr/lib', triplets[0] ?? '');
  // Not asked for, but needed.
  assert.ok((await readdir(lib)).some((name) => name.startsWith('libgfortran.so.')));
  assert.equal(await readlink(join(lib, 'libblas.so.3')), 'blas/libblas.so.3');
  assert.ok((await stat(join(lib, 'liblapack.so.3'))).isFile());
  for (const file of await readdir(join(root, 'usr/share/doc'), { recursive: true, withFileTypes: true })) {
    assert.ok(!file.isFile() || file.name === 'copyright', join(file.parentPath, file.name));
  }

  const modules = join(root, 'usr/lib/python3/dist-packages');
  const cached =
    (await readdir(join(modules, '__pycache__'))).find((name) => /^six\.cpython-\d+\.pyc$/.test(name)) ?? '';
  const header = await readFile(join(modules, '__pycache__', cached));
  // PEP 552: flags 0, then the source's time and size.
  const source = await stat(join(modules, 'six.py'));
  assert.deepEqual(
    [header.readUInt32LE(4), header.readUInt32LE(8), header.readUInt32LE(12)],
    [0, Math.floor(source.mtimeMs / 1000), source.size],
  );
  assert.ok(source.mtimeMs / 1000 <= EPOCH);
  // Tracebacks name the files as the image has them.
  assert.ok(header.includes('/usr/lib/python3/dist-packages/six.py') && !header.includes(scratch));
});
