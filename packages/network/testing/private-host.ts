import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '@aenv/platform/process/run.ts';

const INSIDE = 'AENV_TEST_PRIVATE_HOST';

/**
 * Runs the tests of this file in namespaces of their own (network, mounts, processes), which play the host: nothing of
 * the real host's network is seen or changed, and whatever a failing test leaves ends with it. The file runs itself
 * again for that; `define` is called in the inner run only.
 * @param timeoutMs limit of the whole inner run
 */
export async function inPrivateHost(file: string, define: () => void, timeoutMs = 240_000): Promise<void> {
  if (process.env[INSIDE] === '1') {
    await prepare();
    define();
    return;
  }
  await test(`in a private host: ${basename(file)}`, { timeout: timeoutMs }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'aenv-host-'));
    // Virtual machines run as users of their own and must get through.
    await chmod(folder, 0o711);
    let code: number | null;
    try {
      code = await runInside(fileURLToPath(file), folder, t.signal);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    assert.equal(code, 0, 'a test in the private host failed; its output is above');
  });
}

async function prepare(): Promise<void> {
  const folder = '/run/netns';
  mkdirSync(folder, { recursive: true });
  await forgetMounts(folder);
  await run(['mount', '-t', 'tmpfs', 'tmpfs', folder]);
  await run(['ip', 'link', 'set', 'lo', 'up']);
  // New namespaces have this as the real host has it.
  await run(['sysctl', '-qw', 'net.ipv4.ip_forward=0']);
}

/** Namespaces of the real host's daemons are mounted here too; what becomes of them is not this host's business. */
async function forgetMounts(folder: string): Promise<void> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '');
  for (const point of points.reverse()) {
    if (point === folder || point.startsWith(`${folder}/`)) await run(['umount', '-l', point], { okCodes: [0, 1, 32] });
  }
}

/**
 * What the tests print comes out as they print it: of one that hangs, what came before is what tells.
 * @param signal ends all that is inside
 */
function runInside(file: string, temporary: string, signal: AbortSignal): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  // NODE_TEST_CONTEXT would make the inner run speak the runner's private protocol.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const child = spawn('unshare', [...namespaces, process.execPath, '--test-reporter=spec', file], {
    env: { ...env, [INSIDE]: '1', TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk: Buffer) => process.stdout.write(chunk));
  child.on('error', reject);
  child.on('close', resolve);
  return promise;
}
