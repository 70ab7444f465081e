import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { isTunOpenToUsers, openTunToUsers } from './tun-access.ts';

test('a TUN device for root alone is opened to users, a missing one is named', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tun-'));
  t.after(() => rm(folder, { recursive: true }));
  const device = join(folder, 'tun');
  assert.equal(await isTunOpenToUsers(device), undefined);
  await assert.rejects(openTunToUsers(silentLogger, device), { code: 'host_unsupported', message: new RegExp(device) });
  await writeFile(device, '', { mode: 0o600 });
  assert.equal(await isTunOpenToUsers(device), false);
  await openTunToUsers(silentLogger, device);
  assert.equal(await isTunOpenToUsers(device), true);
  assert.equal((await stat(device)).mode & 0o777, 0o666);
});
