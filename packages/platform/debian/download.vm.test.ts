import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '../observability/logger.ts';
import type { DebianOptions } from './contract.ts';
import { downloadPackages, queryPackages } from './download.ts';
import { hostCodename } from './host.ts';
import { unpackDeb } from './unpack.ts';

let workDir: string;
let options: DebianOptions;
before(async () => {
  workDir = await mkdtemp(join(tmpdir(), 'platform-debian-'));
  options = { workDir, log: silentLogger };
});
after(() => rm(workDir, { recursive: true, force: true }));

/** What a download must not touch: the host's lists and archives, and dpkg's status. */
async function hostState(): Promise<unknown> {
  const lists = (await readdir('/var/lib/apt/lists')).sort();
  const archives = (await readdir('/var/cache/apt/archives')).sort();
  return { lists, archives, status: (await stat('/var/lib/dpkg/status')).mtimeMs };
}

test('a package is fetched, verified and unpacked without a trace on the host; a damaged file is fetched again', async () => {
  const suite = await hostCodename();
  const before = await hostState();
  const request = { suite, packages: ['libfdt1'], withDependencies: false };
  const [deb] = await downloadPackages(request, options);
  assert.equal(deb?.name, 'libfdt1');
  const whole = await readFile(deb?.path ?? '');

  await truncate(deb?.path ?? '', 1000);
  const [again] = await downloadPackages(request, options);
  assert.deepEqual(await readFile(again?.path ?? ''), whole);

  await unpackDeb(again?.path ?? '', join(workDir, 'unpacked'));
  const files = await readdir(join(workDir, 'unpacked/usr/lib'), { recursive: true });
  assert.ok(files.some((name) => /libfdt.*\.so/.test(name)));
  assert.deepEqual(await hostState(), before);
});

test('another suite of the same mirror, with what the host lacks', async () => {
  const suite = `${await hostCodename()}-backports`;
  const packages = ['qemu-system-x86'];
  const [record] = await queryPackages({ suite, packages }, options);
  assert.match(record?.version ?? '', /~bpo/);
  assert.match(record?.depends ?? '', /libc6/);
});

test('a package that does not exist is an error with its name', async () => {
  const suite = await hostCodename();
  await assert.rejects(
    downloadPackages({ suite, packages: ['no-such-package-at-all'], withDependencies: true }, options),
    (error) => error instanceof AenvError && /no-such-package-at-all/.test(error.message),
  );
});
