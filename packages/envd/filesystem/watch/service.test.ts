import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestEnvd, testEnvd } from '../../testing/envd.ts';
import { type Frame, type RpcOptions, stream, unary } from '../../testing/rpc-client.ts';

interface Event {
  readonly name: string;
  readonly type: string;
  readonly entry?: { readonly path: string; readonly type: string; readonly metadata?: Record<string, string> };
}

let envd: TestEnvd;
let dir: string;
before(async () => {
  envd = await testEnvd();
});
after(() => envd[Symbol.asyncDispose]());
test.beforeEach(async (context) => {
  dir = join(envd.dir, context.name.replace(/[^a-z]+/gi, '-').slice(0, 40));
  await mkdir(dir);
});

const call = (method: string, body: object, options: RpcOptions = {}) =>
  unary(envd.url, `filesystem.Filesystem/${method}`, body, options);
const short = (events: readonly Event[]) =>
  events.map(({ type, name }) => `${type.replace('EVENT_TYPE_', '')} ${name}`);
const put = (path: string, body: string, headers = {}) =>
  fetch(`${envd.url}/files?path=${encodeURIComponent(path)}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });

async function create(body: object): Promise<string> {
  const answer = await call('CreateWatcher', body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return String(answer.body.watcherId);
}

async function events(watcherId: string): Promise<Event[]> {
  const answer = await call('GetWatcherEvents', { watcherId });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return (answer.body.events ?? []) as Event[];
}

/** Frames of a WatchDir, as they come. */
function watch(body: object, options: RpcOptions = {}): AsyncGenerator<Frame> {
  return stream(envd.url, 'filesystem.Filesystem/WatchDir', body, options);
}

const next = async (frames: AsyncGenerator<Frame>) => {
  const { value, done } = await frames.next();
  assert.notEqual(done, true, 'the stream has ended');
  return value.message as {
    start?: object;
    keepalive?: object;
    filesystem?: Event;
    error?: { code: string; message: string };
  };
};

test('a stream starts at once, tells each change, and gives signs of life when there is none', async () => {
  const frames = watch({ path: dir }, { headers: { 'keepalive-ping-interval': '1' } });
  // On a busy host a sign of life may come in between.
  const change = async () => {
    for (;;) {
      const message = await next(frames);
      if (message.keepalive === undefined) return message.filesystem;
    }
  };
  assert.deepEqual(await next(frames), { start: {} });
  await writeFile(join(dir, 'f'), 'x');
  assert.deepEqual(await change(), { name: 'f', type: 'EVENT_TYPE_CREATE' });
  assert.deepEqual(await change(), { name: 'f', type: 'EVENT_TYPE_WRITE' });
  assert.deepEqual(await next(frames), { keepalive: {} });
  assert.deepEqual(await next(frames), { keepalive: {} });
  await rm(join(dir, 'f'));
  assert.deepEqual(await change(), { name: 'f', type: 'EVENT_TYPE_REMOVE' });
  await frames.return(undefined);
});

test('an upload looks as if it were written in place, and is never seen before it is complete', async () => {
  const watcher = await create({ path: dir, recursive: true });
  await mkdir(join(dir, 'sub'));
  assert.deepEqual(short(await events(watcher)), ['CREATE sub']);
  assert.equal((await put(join(dir, 'sub/f'), 'new')).status, 200);
  assert.deepEqual(short(await events(watcher)), ['CREATE sub/f', 'CHMOD sub/f', 'WRITE sub/f']);
  assert.equal((await put(join(dir, 'sub/f'), 'again')).status, 200);
  assert.deepEqual(short(await events(watcher)), ['CHMOD sub/f', 'WRITE sub/f']);
  const socket = connect(envd.port, '127.0.0.1');
  socket.write(
    `POST /files?path=${encodeURIComponent(join(dir, 'sub/broken'))} HTTP/1.1\r\nhost: x\r\n` +
      'content-type: application/octet-stream\r\ncontent-length: 1000000\r\n\r\nsome',
  );
  await delay(100);
  const listed = await call('ListDir', { path: dir, depth: 5 });
  assert.deepEqual(
    (listed.body.entries as Event[]).map(({ name }) => name),
    ['sub', 'f'],
  );
  socket.destroy();
  await delay(100);
  assert.deepEqual(short(await events(watcher)), []);
  await call('RemoveWatcher', { watcherId: watcher });
});

test('events carry what is at their path, with its metadata, where something is there', async () => {
  const watcher = await create({ path: dir, includeEntry: true });
  await put(join(dir, 'é'), 'hello', { 'x-metadata-tag': 'v' });
  for (const { entry } of await events(watcher)) {
    assert.equal(entry?.path, join(dir, 'é'));
    assert.equal(entry.type, 'FILE_TYPE_FILE');
    assert.deepEqual(entry.metadata, { tag: 'v' });
  }
  await rename(join(dir, 'é'), join(dir, 'other'));
  await writeFile(join(dir, 'é'), '');
  const all = await events(watcher);
  assert.deepEqual(short(all), ['RENAME é', 'CREATE other', 'CREATE é']);
  assert.equal(all[0]?.entry, undefined, 'of a new file that only has the name');
  assert.equal(all[1]?.entry?.path, join(dir, 'other'));
  await rm(join(dir, 'é'));
  await chmod(dir, 0o700);
  const [removed, root] = await events(watcher);
  assert.deepEqual(removed, { name: 'é', type: 'EVENT_TYPE_REMOVE' });
  assert.deepEqual([root?.name, root?.type, root?.entry?.path], ['.', 'EVENT_TYPE_CHMOD', dir]);
});

test('polling gives all that happened before, once, and nothing after the end', async () => {
  const watcher = await create({ path: dir });
  for (let round = 0; round < 20; round++) {
    await writeFile(join(dir, `f${round}`), 'x');
    assert.deepEqual(short(await events(watcher)), [`CREATE f${round}`, `WRITE f${round}`]);
  }
  assert.deepEqual(await events(watcher), []);
  assert.equal((await call('RemoveWatcher', { watcherId: watcher })).status, 200);
  for (const method of ['GetWatcherEvents', 'RemoveWatcher']) {
    const gone = await call(method, { watcherId: watcher });
    assert.deepEqual([gone.status, gone.body.code], [404, 'not_found']);
  }
  assert.equal((await call('GetWatcherEvents', {})).status, 404);
});

test('when the folder is gone, its last events come first, and then every call says so', async () => {
  const watcher = await create({ path: dir, recursive: true });
  await mkdir(join(dir, 'a'));
  await rm(dir, { recursive: true });
  const last: string[] = [];
  let error: Record<string, unknown> | undefined;
  while (error === undefined) {
    const answer = await call('GetWatcherEvents', { watcherId: watcher });
    if (answer.status === 200) last.push(...short((answer.body.events ?? []) as Event[]));
    else error = answer.body;
  }
  assert.ok(last.includes('REMOVE a') && last.at(-1) === 'REMOVE .', last.join());
  assert.equal(error.code, 'not_found');
  assert.equal((await call('GetWatcherEvents', { watcherId: watcher })).status, 404);
  await call('RemoveWatcher', { watcherId: watcher });
  await mkdir(dir);
});

test('the end of the stream says why it ended', async () => {
  const late = watch({ path: dir }, { headers: { 'connect-timeout-ms': '300' } });
  await next(late);
  const { error } = await next(late);
  assert.equal(error?.code, 'deadline_exceeded');
  assert.equal((await late.next()).done, true);
  await mkdir(join(dir, 'sub'));
  const gone = watch({ path: join(dir, 'sub') });
  await next(gone);
  await rm(join(dir, 'sub'), { recursive: true });
  assert.deepEqual((await next(gone)).filesystem, { name: '.', type: 'EVENT_TYPE_REMOVE' });
  assert.equal((await next(gone)).error?.code, 'not_found');
});

test('what cannot be watched is refused by its kind, in the end frame of a stream', async () => {
  await writeFile(join(dir, 'file'), '');
  await symlink('loop', join(dir, 'loop'));
  for (const [path, code] of [
    [join(dir, 'missing'), 'not_found'],
    [join(dir, 'file'), 'invalid_argument'],
    [join(dir, 'file/below'), 'invalid_argument'],
    [join(dir, 'loop'), 'invalid_argument'],
    [`${dir}/a\0b`, 'invalid_argument'],
    [`/${'x'.repeat(300)}`, 'invalid_argument'],
  ] as const) {
    const frames = watch({ path });
    assert.equal((await next(frames)).error?.code, code, path);
    assert.equal((await frames.next()).done, true);
    assert.equal((await call('CreateWatcher', { path })).body.code, code, path);
  }
  const ghost = watch({ path: dir }, { user: 'ghost' });
  assert.equal((await next(ghost)).error?.code, 'unauthenticated');
  assert.equal((await next(watch({ path: '~' }))).error, undefined, 'a path is meant as everywhere else');
});

test('a client that leaves takes its watch with it', async () => {
  const frames = watch({ path: dir });
  assert.deepEqual(await next(frames), { start: {} });
  const before = applets();
  await frames.return(undefined);
  for (const end = performance.now() + 5_000; applets() >= before; await delay(10)) {
    assert.ok(performance.now() < end, 'its process is still there');
  }
});

/** How many processes of the native applet run below this one. */
function applets(): number {
  const text = execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' });
  return text.split('\n').filter((line) => line.endsWith(' watch')).length;
}
