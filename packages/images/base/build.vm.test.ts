import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { convertImage } from '../convert/convert.ts';
import { readOciLayout } from '../oci/layout.ts';
import { fsck } from '../testing/ext4.ts';
import { flatDisk } from '../testing/flat-disk.ts';
import { ensureBaseImage } from './build.ts';

// The image is in the cache of an installed aenv; where it is not, this test makes it, which takes minutes.
const assetsDir = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';

async function debugfs(path: string, command: string): Promise<string> {
  const { stdout, stderr } = await run(['debugfs', '-R', command, path]);
  return stdout + stderr;
}

test('the base image holds what sandboxes are promised', async (t) => {
  const image = await ensureBaseImage({ assetsDir, log: silentLogger });
  const again = await ensureBaseImage({ assetsDir, log: silentLogger });
  assert.deepEqual(again, image);
  const layersDir = await mkdtemp(join(tmpdir(), 'images-base-'));
  t.after(() => rm(layersDir, { recursive: true }));
  const { layers, start } = await convertImage(await readOciLayout(image.layoutDir), { layersDir, log: silentLogger });
  assert.deepEqual([start.user, start.workdir, start.envVars.LANG], ['user', '/home/user', 'C.UTF-8']);
  await using disk = await flatDisk(layers);
  await fsck(disk.path);

  const programs = ['bash', 'curl', 'git', 'ps', 'pgrep', 'python3', 'sudo', 'infocmp', 'less'].map(
    (name) => `/usr/bin/${name}`,
  );
  const files = ['/usr/bin/ss', '/usr/sbin/ip', '/usr/lib/git-core/git-daemon', '/etc/ssl/certs/ca-certificates.crt'];
  const data = ['/usr/lib/terminfo/x/xterm-256color', '/usr/lib/locale/C.utf8/LC_CTYPE', '/etc/sudoers.d/90-aenv-user'];
  for (const path of [...programs, ...files, ...data]) {
    assert.match(await debugfs(disk.path, `stat ${path}`), /Inode: \d+/, path);
  }
  assert.match(await debugfs(disk.path, 'stat /usr/bin/python'), /Fast link dest: "python3"/);
  assert.match(await debugfs(disk.path, 'cat /etc/passwd'), /^user:x:1000:1000::\/home\/user:\/bin\/bash$/m);
  assert.match(await debugfs(disk.path, 'stat /usr/bin/sudo'), /Mode: {2}04755/);
});
