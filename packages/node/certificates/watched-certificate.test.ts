import assert from 'node:assert/strict';
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { certificateFolder } from './testing/certificate-folder.ts';
import { WatchedCertificate } from './watched-certificate.ts';

async function eventually(condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`not within 5 s: ${what}`);
}

test('links that are put in the place of others are followed, as tools that renew certificates do it', async (t) => {
  const [first, second] = [await certificateFolder(), await certificateFolder()];
  const live = join(first.dir, 'live');
  t.after(async () => {
    for (const { dir } of [first, second]) await rm(dir, { recursive: true, force: true });
  });
  await mkdir(live);
  const link = async (dir: string) => {
    for (const name of ['cert.pem', 'key.pem']) {
      await symlink(join(dir, name), join(live, `new-${name}`));
      await rename(join(live, `new-${name}`), join(live, name));
    }
  };
  await link(first.dir);
  const files = { cert: join(live, 'cert.pem'), key: join(live, 'key.pem') };
  const watched = await WatchedCertificate.open(files, { log: silentLogger, settleMs: 20 });
  t.after(() => watched.close());
  const seen: string[] = [];
  watched.onChange(({ cert }) => seen.push(cert));
  await link(second.dir);
  await eventually(() => seen.length > 0, 'the change is seen');
  assert.equal(seen.at(-1), await readFile(join(second.dir, 'cert.pem'), 'utf8'));
  assert.equal(watched.current().cert, seen.at(-1));
});

test('without news of the file system the files are read now and then; a fault is logged once', async (t) => {
  const { dir } = await certificateFolder();
  t.after(() => rm(dir, { recursive: true, force: true }));
  const errors: string[] = [];
  const log: Logger = { ...silentLogger, error: (message) => void errors.push(message) };
  const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  // No event settles within the test.
  const watched = await WatchedCertificate.open(files, { log, settleMs: 600_000, rereadMs: 20 });
  t.after(() => watched.close());
  const good = watched.current();
  await writeFile(files.key, 'no key');
  await eventually(() => errors.length > 0, 'the fault is logged');
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(errors, ['the new TLS certificate cannot be used; the old one stays']);
  assert.equal(watched.current(), good);
});
