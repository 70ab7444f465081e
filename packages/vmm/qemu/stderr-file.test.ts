import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFile, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { StderrFile } from './stderr-file.ts';

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'stderr-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

test('last lines are read, and a file that grew too large is emptied while it is written to', async (t) => {
  const folder = await folderOf(t);
  const stderr = new StderrFile(folder);
  await using output = await stderr.create();
  await output.write(`noise\n${'x'.repeat(300 * 1024)}\nlast line\n`);
  assert.equal(await stderr.lastLines(1), 'last line');
  await stderr.trim();
  assert.equal((await stat(join(folder, 'stderr.log'))).size, 0);
  await output.write('afterwards\n');
  assert.equal((await stat(join(folder, 'stderr.log'))).size, 11);
  assert.equal(await stderr.lastLines(5), 'afterwards');
});

test('a link, a FIFO or nothing in the place of the file is not read and not waited for', async (t) => {
  const folder = await folderOf(t);
  const secret = join(folder, 'secret');
  await writeFile(secret, 'secret of the host\n');
  const path = join(folder, 'stderr.log');
  const stderr = new StderrFile(folder);
  assert.equal(await stderr.lastLines(5), '');
  await symlink(secret, path);
  assert.equal(await stderr.lastLines(5), '');
  await appendFile(secret, 'x'.repeat(300 * 1024));
  await stderr.trim();
  assert.ok((await stat(secret)).size > 300 * 1024);
  await rm(path);
  execFileSync('mkfifo', [path]);
  assert.equal(await stderr.lastLines(5), '');
});
