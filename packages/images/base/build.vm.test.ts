import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { buildRootfs } from '../rootfs/build.ts';
import { ensureBaseImage } from './build.ts';

// The image is in the cache of an installed aenv; where it is not, this test makes it, which takes minutes.
const assetsDir = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';

async function debugfs(path: string, command: string): Promise<string> {
  const { stdout, stderr } = await run(['debugfs', '-R', command, path]);
  return stdout + stderr;
}

test('the base image holds what sandboxes are promised', async () => {
  const image = await ensureBaseImage({ assetsDir, log: silentLogger });
  const again = await ensureBaseImage({ assetsDir, log: silentLogger });
  assert.deepEqual(again, image);
  const rootfs = await buildRootfs(image.layoutDir, { assetsDir, log: silentLogger });
  assert.equal(rootfs.digest, image.digest);
  assert.deepEqual(rootfs.start.user, 'user');
  assert.deepEqual(rootfs.start.workdir, '/home/user');
  assert.equal(rootfs.start.envVars.LANG, 'C.UTF-8');
  await run(['e2fsck', '-fn', rootfs.path]);

  const programs = ['bash', 'curl', 'git', 'ps', 'pgrep', 'python3', 'sudo', 'infocmp', 'less'].map(
    (name) => `/usr/bin/${name}`,
  );
  const files = ['/usr/bin/ss', '/usr/sbin/ip', '/usr/lib/git-core/git-daemon', '/etc/ssl/certs/ca-certificates.crt'];
  const data = ['/usr/lib/terminfo/x/xterm-256color', '/usr/lib/locale/C.utf8/LC_CTYPE', '/etc/sudoers.d/90-aenv-user'];
  for (const path of [...programs, ...files, ...data]) {
    assert.match(await debugfs(rootfs.path, `stat ${path}`), /Inode: \d+/, path);
  }
  assert.match(await debugfs(rootfs.path, 'stat /usr/bin/python'), /Fast link dest: "python3"/);
  assert.match(await debugfs(rootfs.path, 'cat /etc/passwd'), /^user:x:1000:1000::\/home\/user:\/bin\/bash$/m);
  assert.match(await debugfs(rootfs.path, 'stat /usr/bin/sudo'), /Mode: {2}04755/);
});
