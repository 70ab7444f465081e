import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '@aenv/platform/process/run.ts';
import { TestDaemon } from '../harness/daemon.ts';

const CLIENT = fileURLToPath(new URL('tls-client.ts', import.meta.url));

/** A port that was free a moment ago: clients are told it before the daemon listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port');
}

test('with a certificate of `aenv cert`, E2B_DOMAIN alone leads the published SDK to everything', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'aenvt-tls-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const printed = await run([
    process.execPath,
    'packages/node/host/main.ts',
    'cert',
    '--domain',
    'some.test',
    '--out',
    dir,
  ]);
  assert.match(printed.stdout, /New certificate for some\.test/);
  const domain = `some.test:${await freePort()}`;
  await using daemon = await TestDaemon.start({
    env: {
      ...{ AENV_TLS_CERT: join(dir, 'cert.pem'), AENV_TLS_KEY: join(dir, 'key.pem') },
      ...{ AENV_TLS_LISTEN: domain.replace('some.test', '127.0.0.1'), AENV_PROXY_DOMAINS: domain },
    },
  });
  const hosts = join(dir, 'hosts');
  await writeFile(hosts, '127.0.0.1 localhost\n');
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('unshare', ['--mount', '--propagation', 'private', process.execPath, CLIENT, hosts], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...{ PATH, HOME, E2B_DOMAIN: domain, E2B_API_KEY: daemon.apiKey },
      NODE_EXTRA_CA_CERTS: join(dir, 'ca.pem'),
    },
  });
  const out: string[] = [];
  const err: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk.toString()));
  const timer = setTimeout(() => child.kill('SIGKILL'), 300_000);
  const code = await new Promise<number | null>((done) => child.once('close', done));
  clearTimeout(timer);
  assert.equal(code, 0, err.join(''));
  const [seen, after] = out
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const { web, ...rest } = seen ?? {};
  assert.match(String(web), new RegExp(`^8080-[a-z0-9]+\\.${domain}$`));
  assert.deepEqual(rest, {
    ...{ stdout: 'over\n', stderr: 'TLS\n', content: 'content', downloaded: 'content', bigIsEqual: true },
    ...{ served: 'content', state: 'running' },
  });
  assert.equal(after?.running, false);
  assert.match(String(after?.told), /The sandbox was killed or reached its end of life/);
});
