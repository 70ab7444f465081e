import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  AuthenticationError,
  FileNotFoundError,
  type FilesystemEvent,
  InvalidArgumentError,
  type Sandbox,
  TimeoutError,
} from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';

let daemon: TestDaemon;
let sandbox: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

type Options = Parameters<Sandbox['files']['watchDir']>[2];

/** A watch by the SDK, with all that it told; `exit` is what its `onExit` got. */
async function watch(path: string, options: Options = {}) {
  const events: FilesystemEvent[] = [];
  const { promise: exit, resolve } = Promise.withResolvers<Error | undefined>();
  const handle = await sandbox.files.watchDir(path, (event) => void events.push(event), {
    timeoutMs: 0,
    onExit: (error) => resolve(error),
    ...options,
  });
  const told = () => events.map(({ type, name }) => `${type} ${name}`);
  return {
    events,
    told,
    exit,
    stop: () => handle.stop(),
    see: (...changes: string[]) =>
      until(() => changes.every((change) => told().includes(change)), {
        timeoutMs: 60_000,
        what: `told of ${changes.join(', ')}`,
      }),
  };
}

async function rpc(method: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const detail = (await (await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`)).json()) as {
    envdAccessToken: string;
  };
  const answer = await daemon.port(sandbox.sandboxId, 49983, `/filesystem.Filesystem/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-access-token': detail.envdAccessToken },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test('writes of the SDK and of programs are told in their order, unfinished uploads never', async () => {
  await sandbox.files.makeDir('flat');
  const seen = await watch('flat');
  await sandbox.files.write('flat/f', 'one');
  await sandbox.files.write('flat/f', 'two');
  await shell(sandbox, 'cd /home/user/flat && echo 3 >> f && mv f g && chmod 600 g && rm g');
  await seen.see('remove g');
  assert.deepEqual(seen.told(), [
    'create f',
    'chmod f',
    'write f',
    'chmod f',
    'write f',
    'write f',
    'rename f',
    'create g',
    'chmod g',
    'remove g',
  ]);
  await seen.stop();
  await sandbox.files.write('flat/after', 'x');
  await seen.exit;
  assert.equal(seen.told().at(-1), 'remove g', 'nothing comes after the stop');
});

test('folders that are filled as fast as a shell can are told whole, again and again', async () => {
  const rounds = SOAK ? 300 : 30;
  await sandbox.files.makeDir('deep');
  const seen = await watch('deep', { recursive: true });
  await shell(
    sandbox,
    `cd /home/user/deep && for i in $(seq ${rounds}); do mkdir -p r$i/a/b && echo x > r$i/a/b/f && mv r$i/a r$i/c && echo y > r$i/c/b/g; done; touch end`,
  );
  await seen.see('create end');
  for (let round = 1; round <= rounds; round++) {
    // Where a folder was renamed before anybody could look into it, its content is told under the new name.
    const told = new Set(seen.told());
    assert.ok(told.has(`create r${round}`), `r${round}`);
    assert.ok(told.has(`create r${round}/c`), `r${round}/c`);
    assert.ok(told.has(`write r${round}/c/b/g`), `r${round}/c/b/g`);
    assert.ok(
      told.has(`write r${round}/a/b/f`) || told.has(`write r${round}/c/b/f`),
      `f of r${round}: ${[...told].filter((change) => change.includes(` r${round}/`)).join()}`,
    );
  }
  await seen.stop();
});

test('events carry the entry with its metadata', async () => {
  await sandbox.files.makeDir('entry');
  const seen = await watch('entry', { includeEntry: true });
  await sandbox.files.write('entry/é', 'four', { metadata: { kind: 'x' } });
  await seen.see('write é');
  for (const { entry } of seen.events) {
    assert.equal(entry?.path, '/home/user/entry/é');
    assert.equal(entry.size, 4);
    assert.equal(entry.owner, 'user');
    assert.deepEqual(entry.metadata, { kind: 'x' });
  }
  await sandbox.files.remove('entry/é');
  await seen.see('remove é');
  assert.equal(seen.events.at(-1)?.entry, undefined);
  await seen.stop();
});

test('more changes than can be told are told as such, and watching again works', async () => {
  await shell(sandbox, 'mkdir -p /tmp/flood && touch /tmp/flood/a');
  // The client does not read while it handles its first event.
  const { promise: reading, resolve: read } = Promise.withResolvers<void>();
  const { promise: exit, resolve: exited } = Promise.withResolvers<Error | undefined>();
  await sandbox.files.watchDir('/tmp/flood', () => reading, { timeoutMs: 0, onExit: (error) => exited(error) });
  // What fits into sockets and pipes on the way comes on top of the queue of the kernel, so there is much of it.
  await sandbox.commands.run(
    `python3 -c 'import os
for i in range(${SOAK ? 300_000 : 60_000}): os.rename("/tmp/flood/a", "/tmp/flood/" + "b" * 200); os.rename("/tmp/flood/" + "b" * 200, "/tmp/flood/a")'`,
    { user: 'root', timeoutMs: 300_000 },
  );
  read();
  const error = await exit;
  assert.match(String(error?.message), /lost/);
  const again = await watch('/tmp/flood');
  await shell(sandbox, 'touch /tmp/flood/again');
  await again.see('create again');
  await again.stop();
});

test('polling gives all that happened before, also right after a write', async () => {
  await sandbox.files.makeDir('polled');
  const created = await rpc('CreateWatcher', { path: 'polled', recursive: true });
  const { watcherId } = created.body;
  for (let round = 0; round < 5; round++) {
    await sandbox.files.write(`polled/f${round}`, 'x');
    const { body } = await rpc('GetWatcherEvents', { watcherId });
    assert.deepEqual(
      (body.events as { name: string; type: string }[]).map(({ name, type }) => `${type.slice(11)} ${name}`),
      [`CREATE f${round}`, `CHMOD f${round}`, `WRITE f${round}`],
    );
  }
  assert.equal((await rpc('RemoveWatcher', { watcherId })).status, 200);
  assert.equal((await rpc('GetWatcherEvents', { watcherId })).body.code, 'not_found');
});

test('what cannot be watched has its class of error', async () => {
  await sandbox.files.write('plain', 'x');
  await assert.rejects(watch('missing'), FileNotFoundError);
  await assert.rejects(watch('plain'), InvalidArgumentError);
  await assert.rejects(watch('plain/below'), InvalidArgumentError);
  await assert.rejects(watch('n'.repeat(256)), InvalidArgumentError);
  await assert.rejects(watch('.', { user: 'ghost' }), AuthenticationError);
});

test('the deadline of a watch, and the end of its folder, are told by their class', async () => {
  const late = await watch('.', { timeoutMs: 1_000 });
  assert.ok((await late.exit) instanceof TimeoutError);
  await sandbox.files.makeDir('ends');
  const gone = await watch('ends');
  await sandbox.files.remove('ends');
  assert.match(String(await gone.exit), /ends' is no longer there/);
  assert.deepEqual(gone.told(), ['remove .']);
});

test('watches end with the sandbox, and say so', async () => {
  const own = await createSandbox(daemon);
  const { promise: exit, resolve } = Promise.withResolvers<Error | undefined>();
  await own.files.watchDir('.', () => {}, { timeoutMs: 0, onExit: (error) => resolve(error) });
  await own.kill();
  assert.ok((await exit) instanceof TimeoutError);
});
