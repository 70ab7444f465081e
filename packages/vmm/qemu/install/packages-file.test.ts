import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PACKAGES, versionOfInstall } from './packages-file.ts';

test('the version is that of the package with the program, however the file is laid out; what is no such file has none', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'vmm-packages-'));
  t.after(() => rm(folder, { recursive: true }));
  const versionIn = async (text: string) => {
    await writeFile(join(folder, PACKAGES), text);
    return await versionOfInstall(folder);
  };
  const qemu = { version: '1:10.0.2+ds-2~bpo12+1', architecture: 'amd64', name: 'qemu-system-x86' };
  const install = { suite: 'x', packages: [{ name: 'qemu-system-data', version: '1:9.9.9' }, qemu] };
  assert.equal(await versionIn(JSON.stringify(install)), '10.0.2');
  assert.equal(await versionIn(JSON.stringify({ packages: [{ ...qemu, version: '7.2.22' }] }, null, 4)), '7.2.22');
  const none: unknown[] = [null, 1, [], {}, { packages: {} }, { packages: [null, 'qemu-system-x86'] }];
  none.push({ packages: [{ ...qemu, version: 7 }] }, { packages: [{ ...qemu, version: 'unknown' }] });
  for (const value of none) assert.equal(await versionIn(JSON.stringify(value)), undefined, JSON.stringify(value));
  assert.equal(await versionIn(JSON.stringify(install).slice(0, -5)), undefined, 'cut off');
  assert.equal(await versionOfInstall(join(folder, 'none')), undefined);
});
