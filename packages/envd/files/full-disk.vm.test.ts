import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ARCHIVE_PATH } from '@aenv/contracts/envd/archive.ts';
import { testEnvd } from '../testing/envd.ts';
import { unary } from '../testing/rpc-client.ts';

test('a full disk is 507 in words, the old content stays, and it works again when there is room', async () => {
  await using envd = await testEnvd();
  const disk = join(envd.dir, 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=16', 'none', disk]);
  try {
    const large = new Uint8Array(3 * 1024 * 1024);
    const url = (path: string) => `${envd.url}/files?path=${encodeURIComponent(path)}`;
    const put = (path: string, body: Uint8Array<ArrayBuffer> | string) =>
      fetch(url(path), { method: 'POST', body, headers: { 'content-type': 'application/octet-stream' } });
    await writeFile(join(disk, 'f'), 'old');
    for (const upload of [
      () => put(join(disk, 'f'), large),
      () => {
        const body = new FormData();
        body.append('file', new Blob([large]), join(disk, 'f'));
        return fetch(url(''), { method: 'POST', body });
      },
    ]) {
      const response = await upload();
      assert.equal(response.status, 507);
      assert.deepEqual(await response.json(), { code: 507, message: 'no space left on device' });
      assert.deepEqual(await readdir(disk), ['f']);
      assert.equal(await readFile(join(disk, 'f'), 'utf8'), 'old');
    }
    await writeFile(join(envd.dir, 'large'), large);
    const archive = execFileSync('tar', ['-c', '-C', envd.dir, 'large'], { maxBuffer: 2 * large.length });
    const body = new Uint8Array(archive);
    const unpack = await fetch(`${envd.url}${ARCHIVE_PATH}?path=${encodeURIComponent(disk)}`, { method: 'POST', body });
    assert.equal(unpack.status, 507);
    assert.deepEqual(await readdir(disk), ['f'], 'the entry that did not fit is gone');
    await writeFile(join(disk, 'fill'), large).catch(() => {});
    assert.equal((await put(join(disk, 'g'), 'x')).status, 507);
    await rm(join(disk, 'fill'));
    assert.equal((await put(join(disk, 'g'), 'x')).status, 200);
    for (let i = 0; i < 16; i++) await writeFile(join(disk, `i${i}`), '').catch(() => {});
    const answer = await unary(envd.url, 'filesystem.Filesystem/MakeDir', { path: join(disk, 'd') });
    assert.equal(answer.status, 500);
    assert.match(String(answer.body.message), /no space left/);
  } finally {
    execFileSync('umount', [disk]);
  }
});
