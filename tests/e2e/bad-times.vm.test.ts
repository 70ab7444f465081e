import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';

/** Starts a daemon that must not come up, and gives its log. */
async function failedStart(env: Record<string, string>): Promise<string> {
  try {
    await using daemon = await TestDaemon.start({ env });
    assert.fail(`came up at ${daemon.url}`);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
    return `${String(error)} ${cause}`;
  }
}

test('a port that is in use is told with the address and the way out', async () => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address() as net.AddressInfo;
  const log = await failedStart({ AENV_LISTEN: `127.0.0.1:${port}` });
  taken.close();
  assert.match(log, /port_in_use/);
  assert.match(log, new RegExp(`127\\.0\\.0\\.1:${port}`));
  assert.match(log, /AENV_LISTEN/);
});

test('a QEMU that is not there is told with its path and the way out', async () => {
  const log = await failedStart({ AENV_VMM_QEMU: '/nonexistent/qemu-system-x86_64' });
  assert.match(log, /qemu_missing/);
  assert.match(log, /\/nonexistent\/qemu-system-x86_64/);
});

test('an unknown configuration key is refused by name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-config-'));
  await writeFile(join(folder, 'config.toml'), '[limits]\nmax_sandbox = 3\n');
  const log = await failedStart({ AENV_CONFIG: join(folder, 'config.toml') });
  await rm(folder, { recursive: true });
  assert.match(log, /config_invalid/);
  assert.match(log, /limits\.max_sandbox/);
});

test('a full disk refuses the sandbox by name, and the daemon goes on when there is room again', async () => {
  await using daemon = await TestDaemon.start();
  const volumes = join(daemon.home, 'volumes', 'layers');
  const { uid } = await stat(volumes);
  await run(['mount', '-t', 'tmpfs', '-o', `size=64k,mode=0700,uid=${uid}`, 'tmpfs', volumes]);
  try {
    await writeFile(join(volumes, 'fill'), Buffer.alloc(64 * 1024)).catch(() => {});
    const answer = await daemon.api('POST', '/v2/sandboxes', { templateID: 'base' });
    const body = (await answer.json()) as { code: number; error_code: string; remediation: string };
    assert.equal(answer.status, 507, JSON.stringify(body));
    assert.equal(body.error_code, 'no_space');
    assert.ok(body.remediation.length > 10);
  } finally {
    await run(['umount', volumes]);
  }
  await using sandbox = await createSandbox(daemon);
  assert.equal((await sandbox.commands.run('echo again')).stdout, 'again\n');
});

test('malformed requests get a clear refusal each, and the daemon lives on', async () => {
  await using daemon = await TestDaemon.start();
  const cases: [string, string, unknown, number, RegExp][] = [
    ['POST', '/sandboxes', { templateID: 5 }, 400, /templateID/],
    ['POST', '/sandboxes', { templateID: 'base', nonsense: true }, 400, /nonsense/],
    ['POST', '/sandboxes', { templateID: 'base', timeout: 0 }, 400, /Timeout must be greater than 0/],
    ['POST', '/sandboxes', { templateID: 'base', timeout: 1e12 }, 400, /timeout/],
    ['POST', '/sandboxes', { templateID: 'base', timeout: '5' }, 400, /timeout/],
    ['POST', '/v2/sandboxes', { templateID: 'base', mcp: { a: 1 } }, 400, /mcp/],
    ['POST', '/v2/sandboxes', { templateID: 'nosuch' }, 404, /template 'nosuch' not found/],
    ['GET', '/sandboxes/inosuchsandbox0000000', undefined, 404, /inosuchsandbox0000000/],
    ['GET', '/nosuch/route', undefined, 404, /nosuch/],
    ['PUT', '/sandboxes', {}, 405, /PUT/],
  ];
  for (const [method, path, body, status, message] of cases) {
    const answer = await daemon.api(method, path, body);
    const text = await answer.text();
    assert.equal(answer.status, status, `${method} ${path}: ${text}`);
    const parsed = JSON.parse(text) as { code: number; message: string; remediation: string };
    assert.equal(parsed.code, status);
    assert.match(parsed.message, message);
    assert.equal(typeof parsed.remediation, 'string');
  }
  const big = await daemon.api('POST', '/sandboxes', { templateID: 'x'.repeat(2 * 1024 * 1024) });
  assert.equal(big.status, 413);
  const noKey = await fetch(`${daemon.url}/sandboxes`);
  assert.equal(noKey.status, 401);

  await using sandbox = await createSandbox(daemon);
  const { envdAccessToken } = (await (await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`)).json()) as {
    envdAccessToken: string;
  };
  const frames: Buffer[] = [
    Buffer.alloc(0),
    Buffer.from('garbage'),
    Buffer.from([0, 0, 0, 0, 5, 123]),
    Buffer.from([0, 0xff, 0xff, 0xff, 0xff]),
    Buffer.concat([Buffer.from([1, 0, 0, 0, 2]), Buffer.from('{}')]),
    Buffer.concat([Buffer.from([0, 0, 0, 0, 3]), Buffer.from('{"a')]),
  ];
  for (const frame of frames) {
    const answer = await daemon.port(sandbox.sandboxId, 49983, '/process.Process/Start', {
      method: 'POST',
      headers: { 'content-type': 'application/connect+json', 'x-access-token': envdAccessToken },
      body: new Uint8Array(frame),
    });
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /"error"/, frame.toString('hex'));
  }
  assert.equal((await sandbox.commands.run('echo alive')).stdout, 'alive\n');
});
