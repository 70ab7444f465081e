import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HOOKS_HEADER, HOST_SECRET_HEADER, type InitRequest, STEPS_HEADER } from '@aenv/contracts/envd/host-api.ts';
import { Watchers } from '../filesystem/watch/watchers.ts';
import { hooksIn } from '../hooks/folder.ts';
import { runHooks } from '../hooks/run.ts';
import { Attributes } from '../metadata/attributes.ts';
import { ProcessTable } from '../process/process-table.ts';
import { TEST_SECRET, type TestEnvd, testEnvd } from '../testing/envd.ts';
import { Accounts } from '../users/accounts.ts';
import { Users } from '../users/users.ts';
import { applyIdentity, rehearseIdentity } from './identity.ts';
import { StateStore } from './state.ts';

const post = (envd: TestEnvd, path: string, body: unknown, secret = TEST_SECRET) =>
  fetch(envd.url + path, { method: 'POST', headers: { [HOST_SECRET_HEADER]: secret }, body: JSON.stringify(body) });

test('around a capture programs stop and go on, only for the host; connections but the own one are broken', async () => {
  await using envd = await testEnvd();
  assert.equal((await post(envd, '/freeze', {})).status, 401, 'nobody is the host yet');
  await envd.init();
  for (const path of ['/freeze', '/unfreeze', '/hooks']) {
    assert.equal((await post(envd, path, {}, 'b'.repeat(64))).status, 401, path);
    assert.equal((await fetch(envd.url + path)).status, 405, path);
  }
  assert.deepEqual(await (await post(envd, '/freeze', {})).json(), { frozen: true });
  const settled = await envd.init({ event: 'fork', machineId: '0'.repeat(32), sandboxId: 'i1', seed: 'AAAA' });
  assert.match(
    settled.headers.get(STEPS_HEADER) ?? '',
    /^kernel;dur=[\d.]+, access;.*, identity;.*, release;.*, guest;dur=[\d.]+$/,
  );
  assert.equal(envd.system.identities[0]?.machineId, '0'.repeat(32));
  const timestamp = '2031-05-06T07:08:09Z';
  assert.equal((await post(envd, '/unfreeze', { timestamp, stay: true })).status, 200);
  assert.deepEqual([envd.system.clocks.length, envd.system.told.length], [1, 2], 'only the clock');
  assert.deepEqual(await (await post(envd, '/unfreeze', { timestamp, event: 'fork' })).json(), { hooks: 0 });
  assert.equal(envd.system.clocks.length, 2);
  assert.deepEqual(await (await post(envd, '/hooks', { event: 'fork', timeoutMs: 100 })).json(), { hooks: [] });
  const [frozen, broken, thawed] = envd.system.told;
  assert.deepEqual([frozen, thawed], ['freeze', 'thaw']);
  assert.match(broken ?? '', /^disconnect all but [1-9]\d+$/);
  for (const [path, body] of [
    ['/init', { event: 'birth' }],
    ['/init', { event: 'fork', letGo: 1 }],
    ['/init', { letGo: true }],
    ['/init', { machineId: 'x' }],
    ['/unfreeze', { event: 1 }],
    ['/unfreeze', { timestamp: 5 }],
    ['/unfreeze', { stay: 1 }],
    ['/unfreeze', []],
    ['/hooks', { event: 'fork' }],
    ['/hooks', { event: 'fork', timeoutMs: -1 }],
    ['/hooks', { timeoutMs: 1 }],
  ] as const) {
    assert.equal((await post(envd, path, body)).status, 400, JSON.stringify([path, body]));
  }
});

test('one call may do it all; the same one again breaks no connections that programs have made since', async () => {
  await using envd = await testEnvd();
  await envd.init();
  const call = { event: 'create', letGo: true, seed: 'AAAA', sandboxId: 'i1' } as const;
  const told = async (body: InitRequest) => {
    const answer = await envd.init(body);
    assert.deepEqual([answer.status, answer.headers.get(HOOKS_HEADER)], [204, '0']);
    return envd.system.told.splice(0).map((text) => text.replace(/\d+$/, 'PORT'));
  };
  assert.deepEqual(await told(call), ['disconnect all but PORT', 'thaw']);
  assert.deepEqual(await told(call), ['thaw']);
  assert.deepEqual(await told({ ...call, seed: 'AAAB' }), ['disconnect all but PORT', 'thaw']);
});

test('a guest that has heard the time goes on by the latest that it was told; one that has not is set to it', async () => {
  await using envd = await testEnvd();
  await envd.init();
  const [late, next] = [-5_000, 5_000].map((ms) => new Date(Date.now() + ms).toISOString());
  for (const [body, set] of [
    [{ timestamp: late, event: 'resume' }, 0],
    [{ timestamp: late, stay: true }, 0],
    [{ timestamp: next, event: 'resume' }, 1],
    [{ timestamp: next, stay: true }, 1],
    [{ timestamp: late }, 1],
  ] as const) {
    envd.system.clocks.length = 0;
    assert.equal((await post(envd, '/unfreeze', body)).status, 200);
    assert.equal(envd.system.clocks.length, set, JSON.stringify(body));
  }
});

test('hooks run in the order of their names; one that fails or hangs is ended with its group, and the next one runs', async () => {
  await using envd = await testEnvd();
  await envd.init({ sandboxId: 'i1', templateId: 't1', envVars: { MINE: 'yes' } });
  const folder = mkdtempSync(join(tmpdir(), 'aenv-envd-hooks-'));
  const left = join(folder, 'left');
  const endless = mkdtempSync(join(tmpdir(), 'aenv-envd-hooks-'));
  const hook = (name: string, text: string, { mode = 0o755, at = folder } = {}) => {
    writeFileSync(join(at, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(at, name), mode);
  };
  hook(
    '10-says',
    'echo "$AENV_EVENT $AENV_SANDBOX_ID $AENV_TEMPLATE_ID $MINE $(id -u) $(pwd)"; cat; echo oops >&2; exit 3',
  );
  hook('15-much', 'head -c 100000 /dev/zero | tr "\\\\0" x');
  hook('20-leaves', `sleep 60 & echo $! > ${left}`);
  hook('10-hangs', '(sleep 61) & wait', { at: endless });
  hook('20-late', 'true', { at: endless });
  hook('50-plain', 'true', { mode: 0o644 });
  hook('60.bak', 'true');
  hook('.hidden', 'true');
  hook('99-no program', 'true');
  mkdirSync(join(folder, '70-folder'));
  const state = new StateStore(envd.options.stateFile);
  const users = new Users(new Accounts('/etc'), () => undefined);
  const parts = { processes: new ProcessTable(), attributes: new Attributes(''), watchers: new Watchers() };
  const context = { options: envd.options, state, users, ...parts, log: () => {} };
  try {
    assert.deepEqual(hooksIn(folder), ['10-says', '15-much', '20-leaves']);
    const results = await runHooks(context, folder, { event: 'resume', timeoutMs: 60_000 });
    const [says, much, leaves] = results;
    assert.deepEqual([says?.ok, says?.status], [false, 'exit status 3']);
    assert.deepEqual(says?.output.trim().split('\n').sort(), ['oops', 'resume i1 t1 yes 0 /']);
    assert.deepEqual([much?.ok, much?.output.length], [true, 4096]);
    assert.deepEqual([leaves?.ok, leaves?.status], [true, 'exit status 0']);
    process.kill(Number(readFileSync(left, 'utf8')), 'SIGKILL');
    const [hangs, late] = await runHooks(context, endless, { event: 'resume', timeoutMs: 100 });
    assert.match(`${hangs?.ok} ${hangs?.status}`, /^false killed after \d+ ms, when time was over$/);
    assert.deepEqual([late?.ok, late?.status], [false, 'not run: time is over']);
    assert.deepEqual(hooksIn(join(folder, 'none')), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(endless, { recursive: true, force: true });
  }
});

test('a machine-id is written where one is given, also to the copy of D-Bus; what is right is left alone', () => {
  const root = mkdtempSync(join(tmpdir(), 'aenv-envd-machine-id-'));
  try {
    const paths = { etc: join(root, 'etc'), run: join(root, 'run'), dbus: root, kernelHostname: join(root, 'kernel') };
    const identity = { hostname: 'one', sandboxId: 'i1', templateId: 't1' };
    writeFileSync(join(root, 'machine-id'), 'old\n');
    applyIdentity({ ...identity, machineId: 'a'.repeat(32) }, paths);
    const read = () =>
      [join(paths.etc, 'machine-id'), join(root, 'machine-id')].map((path) => readFileSync(path, 'utf8'));
    assert.deepEqual(read(), [`${'a'.repeat(32)}\n`, `${'a'.repeat(32)}\n`]);
    applyIdentity({ ...identity, hostname: 'a-longer-name' }, paths);
    applyIdentity(identity, paths);
    assert.equal(readFileSync(join(paths.etc, 'hostname'), 'utf8'), 'one\n');
    assert.deepEqual(read(), [`${'a'.repeat(32)}\n`, `${'a'.repeat(32)}\n`]);
    rehearseIdentity(join(root, 'rehearsal'));
    assert.throws(() => readFileSync(join(root, 'rehearsal', 'hostname')), { code: 'ENOENT' });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
