import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '@aenv/platform/process/run.ts';

const INSIDE = 'AENV_TEST_PRIVATE_HOST';

/**
 * Runs the tests of this file in namespaces of their own (network, mounts, processes), which play the host: nothing of
 * the real host's network is seen or changed, and whatever a failing test leaves ends with it. The file runs itself
 * again for that; `define` is called in the inner run only.
 */
export function inPrivateHost(file: string, define: () => void): void {
  if (process.env[INSIDE] === '1') {
    before(prepare);
    define();
    return;
  }
  test(`in a private host: ${basename(file)}`, { timeout: 240_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'aenv-network-test-'));
    let code: number | null;
    try {
      const inner = await runInside(fileURLToPath(file), folder);
      process.stdout.write(inner.output);
      code = inner.code;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    assert.equal(code, 0, 'a test in the private host failed; its output is above');
  });
}

async function prepare(): Promise<void> {
  const folder = '/run/netns';
  mkdirSync(folder, { recursive: true });
  await run(['mount', '-t', 'tmpfs', 'tmpfs', folder]);
  await run(['ip', 'link', 'set', 'lo', 'up']);
  // New namespaces have this as the real host has it.
  await run(['sysctl', '-qw', 'net.ipv4.ip_forward=0']);
}

function runInside(file: string, temporary: string): Promise<{ code: number | null; output: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; output: string }>();
  // NODE_TEST_CONTEXT would make the inner run speak the runner's private protocol.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const child = spawn('unshare', [...namespaces, process.execPath, '--test-reporter=spec', file], {
    env: { ...env, [INSIDE]: '1', TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.on('error', reject);
  child.on('close', (code) => resolve({ code, output: Buffer.concat(chunks).toString() }));
  return promise;
}
