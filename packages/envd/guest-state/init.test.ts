import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { BOOT_ID_HEADER, HOST_SECRET_HEADER, SYNC_PATH } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { startEnvd } from '../server/envd.ts';
import { recordedSystem, TEST_SECRET, testEnvd } from '../testing/envd.ts';
import { run, unary } from '../testing/rpc-client.ts';
import { applyIdentity } from './identity.ts';
import { parseTimestamp } from './init-request.ts';

test('the first call sets the host secret, later ones must bring it', async () => {
  await using envd = await testEnvd();
  const anonymous = await fetch(`${envd.url}/init`, { method: 'POST' });
  assert.equal(anonymous.status, 401);
  assert.equal((await envd.init({}, 'short')).status, 401);
  const first = await envd.init();
  assert.equal(first.status, 204);
  assert.equal(first.headers.get('x-envd-version'), ENVD_VERSION);
  assert.match(first.headers.get(BOOT_ID_HEADER) ?? '', /^[0-9a-f-]{36}$/);
  assert.equal((await envd.init({ accessToken: 'stolen' }, 'b'.repeat(64))).status, 401);
  assert.equal((await fetch(`${envd.url}/init`, { method: 'POST' })).status, 401);
  assert.equal((await fetch(`${envd.url}/metrics`)).status, 200, 'no token was set by the refused calls');
  assert.equal((await envd.init()).status, 204);
});

test('the host has file systems written to their disks, and nobody else does', async () => {
  await using envd = await testEnvd();
  await envd.init({ accessToken: 'token' });
  const sync = (headers: Record<string, string>) => fetch(`${envd.url}${SYNC_PATH}`, { method: 'POST', headers });
  for (const headers of [{}, { 'x-access-token': 'token' }, { [HOST_SECRET_HEADER]: 'b'.repeat(64) }]) {
    assert.equal((await sync(headers)).status, 401);
  }
  assert.ok(!envd.system.told.includes('sync'));
  assert.equal((await sync({ [HOST_SECRET_HEADER]: TEST_SECRET })).status, 204);
  assert.ok(envd.system.told.includes('sync'));
});

test('of two first calls at once only one secret wins', async () => {
  await using envd = await testEnvd();
  const answers = await Promise.all([envd.init({}, 'a'.repeat(64)), envd.init({}, 'b'.repeat(64))]);
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [204, 401]);
});

test('the clock is stepped, the seed is used, and a guest is named when its name changes', async () => {
  await using envd = await testEnvd();
  const seed = Buffer.alloc(32, 7);
  await envd.init({
    timestamp: '2031-05-06T07:08:09.123456789Z',
    seed: seed.toString('base64'),
    sandboxId: 'i1',
    hostname: 'h',
  });
  const [clock] = envd.system.clocks;
  assert.equal(clock?.seconds, `${Date.parse('2031-05-06T07:08:09Z') / 1000}.123456789`);
  const ago = process.hrtime.bigint() - (clock?.at ?? 0n);
  assert.ok(ago > 0n && ago < 2_000_000_000n, 'it was so when the call came');
  assert.deepEqual(Buffer.from(envd.system.seeds[0] ?? []), seed);
  assert.deepEqual(envd.system.identities, [
    { hostname: 'h', sandboxId: 'i1', templateId: undefined, machineId: undefined },
  ]);
  await envd.init({ sandboxId: 'i1', hostname: 'h' });
  assert.equal(envd.system.identities.length, 1);
  await envd.init({ sandboxId: 'i2', templateId: 't' });
  assert.deepEqual(envd.system.identities[1], {
    ...{ hostname: 'h', sandboxId: 'i2', templateId: 't', machineId: undefined },
  });
});

test('a clone whose clock or entropy cannot be set is refused, and its state is not changed', async () => {
  const system = { ...recordedSystem(), renew: async () => assert.fail('no clock') };
  await using envd = await testEnvd({ system });
  assert.equal((await envd.init({ timestamp: '2031-05-06T07:08:09Z', accessToken: 't' })).status, 500);
  assert.equal((await fetch(`${envd.url}/envs`)).status, 200);
});

test('drives are mounted before the call is answered; one that cannot be fails it with the reason', async () => {
  await using envd = await testEnvd();
  const drive = { label: 'aenv-drive-1', mountPath: '/data', readOnly: true };
  assert.equal((await envd.init({ drives: [drive], sandboxId: 'i1' })).status, 204);
  assert.deepEqual(envd.system.drives, [drive]);
  assert.equal((await envd.init({ drives: [{ ...drive, mountPath: 'data' }] })).status, 400);
  envd.system.mountDrives = async () => {
    throw new AenvError('drive_unusable', 'the drive for /data cannot be mounted: no');
  };
  const refused = await envd.init({ drives: [drive], accessToken: 't' });
  assert.equal(refused.status, 422);
  assert.match(((await refused.json()) as { message: string }).message, /for \/data cannot be mounted: no/);
  assert.equal((await fetch(`${envd.url}/envs`)).status, 200, 'no token was set by the refused call');
});

test('variables are replaced as a set, and /envs shows them', async () => {
  await using envd = await testEnvd();
  await envd.init({ envVars: { A: '1', B: '2' }, sandboxId: 'i1' });
  await envd.init({ envVars: { B: '3' } });
  assert.deepEqual(await (await fetch(`${envd.url}/envs`)).json(), {
    B: '3',
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: 'i1',
  });
  await envd.init({});
  assert.equal((await run(envd.url, 'printenv', ['B'])).stdout, '3\n');
});

test('malformed bodies are 400 with the name of the field', async () => {
  await using envd = await testEnvd();
  const send = async (body: string) => {
    const headers = { [HOST_SECRET_HEADER]: TEST_SECRET };
    const response = await fetch(`${envd.url}/init`, { method: 'POST', headers, body });
    return `${response.status} ${((await response.json()) as { message: string }).message}`;
  };
  assert.match(await send('{'), /^400 /);
  assert.match(await send('[]'), /^400 /);
  assert.match(await send('{"accessToken":5}'), /^400 .*accessToken/);
  assert.match(await send('{"envVars":{"A":1}}'), /^400 .*envVars/);
  assert.match(await send('{"defaultUser":{}}'), /^400 .*defaultUser/);
  assert.match(await send('{"timestamp":"yesterday"}'), /^400 .*timestamp/);
  assert.match(await send(`{"hostname":"${'x'.repeat(2_000_000)}"}`), /^413 /);
});

test('a restarted envd keeps secret and token, in a file that only root reads', async () => {
  await using envd = await testEnvd();
  await envd.init({ accessToken: 'token', defaultUser: 'nobody', envVars: { A: '1' } });
  assert.equal(statSync(envd.options.stateFile).mode & 0o777, 0o600);
  await envd.envd.close();
  const again = await startEnvd(envd.options);
  try {
    const url = `http://127.0.0.1:${again.port}`;
    assert.equal((await fetch(`${url}/envs`)).status, 401);
    assert.equal(
      (await fetch(`${url}/init`, { method: 'POST', headers: { [HOST_SECRET_HEADER]: 'b'.repeat(64) } })).status,
      401,
    );
    assert.equal((await run(url, '/usr/bin/id', ['-un'], {}, { token: 'token' })).stdout, 'nobody\n');
    assert.equal((await run(url, 'printenv', ['A'], {}, { token: 'token' })).stdout, '1\n');
  } finally {
    await again.close();
  }
});

test('with a damaged state file envd does not start', async () => {
  await using envd = await testEnvd();
  mkdirSync(join(envd.options.stateFile, '..'), { recursive: true });
  for (const text of [
    '',
    '{',
    '{"version":1}',
    '{"version":2,"envVars":{}}',
    '{"version":1,"envVars":{},"accessToken":5}',
  ]) {
    writeFileSync(envd.options.stateFile, text);
    await assert.rejects(startEnvd(envd.options), { code: 'internal' }, text);
  }
});

test('the default user falls back where the image lacks the account', async () => {
  await using envd = await testEnvd();
  const whoami = async () => (await run(envd.url, '/usr/bin/id', ['-u'])).stdout.trim();
  assert.equal(await whoami(), '0', 'before the first init it is root');
  for (const [name, uid] of [
    ['nobody', '65534'],
    ['no-such-account', '0'],
    ['1234', '1234'],
    ['1234:4321', '1234'],
    ['root', '0'],
  ] as const) {
    await envd.init({ defaultUser: name });
    assert.equal(await whoami(), uid, name);
  }
});

test('a guest without any accounts works: root, numbers, but no names', async () => {
  const etc = mkdtempSync(join(tmpdir(), 'aenv-envd-etc-'));
  await using envd = await testEnvd({ etc });
  await envd.init({ defaultUser: 'user' });
  assert.match((await run(envd.url, '/bin/sh', ['-c', 'id -u; echo $HOME'])).stdout, /^0\n\/root\n$/);
  assert.equal(
    (await run(envd.url, '/bin/sh', ['-c', 'id -u; echo $HOME; pwd'], {}, { user: '77' })).stdout,
    '77\n/\n/\n',
  );
  assert.equal((await run(envd.url, 'true', [], {}, { user: 'user' })).error?.code, 'unauthenticated');
  const entry = (await unary(envd.url, 'filesystem.Filesystem/Stat', { path: '/' })).body.entry as { owner: string };
  assert.equal(entry.owner, '0');
  writeFileSync(join(etc, 'passwd'), 'user:x:65534:65534::/tmp:/bin/sh\n');
  assert.match((await run(envd.url, '/bin/sh', ['-c', 'id -u; echo $HOME'])).stdout, /^65534\n\/tmp\n$/);
  rmSync(etc, { recursive: true });
});

test('the default folder is where processes start and empty paths are, if it exists', async () => {
  await using envd = await testEnvd();
  await envd.init({ defaultWorkdir: envd.dir });
  assert.equal((await run(envd.url, 'pwd')).stdout, `${envd.dir}\n`);
  const { body } = await unary(envd.url, 'filesystem.Filesystem/Stat', { path: '' });
  assert.equal((body.entry as { path: string }).path, envd.dir);
  await envd.init({ defaultWorkdir: '/no/such' });
  assert.equal((await run(envd.url, 'pwd')).stdout, '/root\n');
});

test('the identity is written, also where /etc is missing, has links or other content', () => {
  const root = mkdtempSync(join(tmpdir(), 'aenv-envd-identity-'));
  try {
    const paths = {
      etc: join(root, 'etc'),
      run: join(root, 'run/e2b'),
      dbus: root,
      kernelHostname: join(root, 'kernel'),
    };
    const read = (name: string) => readFileSync(join(paths.etc, name), 'utf8');
    applyIdentity({ hostname: 'one', sandboxId: 'i1', templateId: 't1' }, paths);
    assert.equal(read('hostname'), 'one\n');
    assert.equal(read('hosts'), '127.0.0.1 localhost\n127.0.1.1 one\n');
    assert.equal(read('resolv.conf'), 'nameserver 169.254.0.22\n');
    assert.equal(readFileSync(paths.kernelHostname, 'utf8'), 'one');
    assert.equal(readFileSync(join(paths.run, '.E2B_SANDBOX_ID'), 'utf8'), 'i1');

    rmSync(join(paths.etc, 'resolv.conf'));
    symlinkSync('../gone/stub-resolv.conf', join(paths.etc, 'resolv.conf'));
    writeFileSync(join(paths.etc, 'hosts'), '127.0.0.1\tlocalhost me\n10.0.0.1 db\n127.0.1.1 one\n');
    applyIdentity({ hostname: '-two_x.', sandboxId: 'i2', templateId: undefined }, paths);
    assert.equal(read('hosts'), '127.0.0.1\tlocalhost me\n10.0.0.1 db\n127.0.1.1 two-x\n');
    assert.equal(read('resolv.conf'), 'nameserver 169.254.0.22\n');
    assert.equal(existsSync(join(root, 'gone')), false);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test('timestamps: fractions to nanoseconds, offsets, and nothing else', () => {
  assert.equal(parseTimestamp('2026-01-02T03:04:05Z'), '1767323045.000000000');
  assert.equal(parseTimestamp('2026-01-02T04:04:05.5+01:00'), '1767323045.500000000');
  assert.equal(parseTimestamp('2026-01-02T03:04:05.1234567891Z'), '1767323045.123456789');
  for (const text of [
    '',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-13-02T03:04:05Z',
    '1969-01-01T00:00:00Z',
    '1767323045',
  ]) {
    assert.throws(() => parseTimestamp(text), { status: 400 }, text);
  }
});

test('a guest that is captured makes no boot id, and one that continues it gets a secret of its own', async (t) => {
  const envd = await testEnvd();
  t.after(() => envd[Symbol.asyncDispose]());
  const captured = await envd.init({ capture: true });
  assert.equal(captured.status, 204);
  assert.equal(captured.headers.get(BOOT_ID_HEADER), null);
  const own = 'b'.repeat(64);
  const continued = await envd.init({ hostSecret: own });
  assert.equal(continued.status, 204);
  assert.match(continued.headers.get(BOOT_ID_HEADER) ?? '', /^[0-9a-f-]{36}$/);
  // The answer was lost: the same call comes again, with either secret.
  assert.equal((await envd.init({ hostSecret: own })).status, 401);
  assert.equal((await envd.init({ hostSecret: own }, own)).status, 204);
  assert.equal((await envd.init({ hostSecret: 'short' }, own)).status, 400);
  assert.equal((await envd.init({ capture: 'yes' as unknown as boolean }, own)).status, 400);
});
