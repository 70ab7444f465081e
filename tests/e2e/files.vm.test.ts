import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Sandbox } from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';

let daemon: TestDaemon;
let sandbox: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const NAMES = ['a b', '日本語', '🦀', '\u00e9', 'e\u0301', '-rf', '%2F', 'a\nb', 'x'.repeat(255), '..x'];

test('unusual names are written, listed, read, renamed and removed byte for byte', async () => {
  for (const name of NAMES) await sandbox.files.write(`/home/user/names/${name}`, `content of ${name}`);
  const listed = (await sandbox.files.list('names')).map((entry) => entry.name);
  assert.deepEqual([...listed].sort(), [...NAMES].sort());
  for (const name of NAMES) {
    assert.equal(await sandbox.files.read(`/home/user/names/${name}`), `content of ${name}`);
    await sandbox.files.rename(`/home/user/names/${name}`, `/home/user/moved/${name}`);
    assert.equal(await sandbox.files.exists(`/home/user/names/${name}`), false);
    await sandbox.files.remove(`/home/user/moved/${name}`);
    assert.equal(await sandbox.files.exists(`/home/user/moved/${name}`), false);
  }
});

test('a name that is no UTF-8 does not break a listing', async () => {
  await shell(sandbox, `mkdir -p /tmp/raw && cd /tmp/raw && touch good && python3 -c 'open(b"bad\\xff","w")'`);
  const names = (await sandbox.files.list('/tmp/raw')).map((entry) => entry.name);
  assert.equal(names.length, 2);
  assert.ok(names.includes('good'));
});

test('a download names the file exactly, and a name of 256 bytes is refused', async () => {
  await sandbox.files.write('/home/user/dl/日本 語.txt', 'x');
  const answer = await daemon.port(
    sandbox.sandboxId,
    49983,
    `/files?path=${encodeURIComponent('/home/user/dl/日本 語.txt')}`,
    { headers: { 'x-access-token': await token() } },
  );
  assert.equal(answer.status, 200);
  assert.match(
    answer.headers.get('content-disposition') ?? '',
    /filename\*=UTF-8''%E6%97%A5%E6%9C%AC%20%E8%AA%9E\.txt/i,
  );
  await assert.rejects(sandbox.files.write(`/home/user/${'y'.repeat(256)}`, 'x'), /name|long/i);
});

test('twenty writers into the same new folders all succeed', async () => {
  const paths = Array.from({ length: 20 }, (_, i) => `/home/user/race/b/c/d/file${i}`);
  await Promise.all(paths.map((path) => sandbox.files.write(path, path)));
  assert.equal((await sandbox.files.list('/home/user/race/b/c/d')).length, 20);
  const owners = await shell(sandbox, 'find /home/user/race -printf "%u:%g\\n" | sort -u');
  assert.equal(owners, 'user:user\n');
});

test('removing a link leaves its target, and a listing shows where a link points', async () => {
  await shell(sandbox, 'mkdir -p /tmp/l && echo kept > /tmp/l/target && ln -s target /tmp/l/link');
  const link = (await sandbox.files.list('/tmp/l')).find((entry) => entry.name === 'link');
  assert.equal(link?.symlinkTarget, '/tmp/l/target');
  await sandbox.files.remove('/tmp/l/link');
  assert.equal(await sandbox.files.read('/tmp/l/target'), 'kept\n');
});

test('a parent that is a file is a clear refusal, not a fault', async () => {
  await sandbox.files.write('/home/user/plain', 'x');
  const answer = await daemon.port(sandbox.sandboxId, 49983, '/files?path=/home/user/plain/below', {
    method: 'POST',
    headers: { 'x-access-token': await token(), 'content-type': 'application/octet-stream' },
    body: 'data',
  });
  assert.equal(answer.status, 400);
  assert.match(((await answer.json()) as { message: string }).message, /plain/);
});

test('without the token of this sandbox envd answers 401, with that of another one too', async () => {
  await using other = await createSandbox(daemon);
  const foreign = ((await (await daemon.api('GET', `/sandboxes/${other.sandboxId}`)).json()) as Detail).envdAccessToken;
  for (const headers of [{}, { 'x-access-token': 'wrong' }, { 'x-access-token': foreign }]) {
    const files = await daemon.port(sandbox.sandboxId, 49983, '/files?path=/etc/passwd', { headers });
    assert.equal(files.status, 401);
    const rpc = await daemon.port(sandbox.sandboxId, 49983, '/process.Process/List', {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{}',
    });
    assert.equal(rpc.status, 401);
  }
});

test('the paths of envd that are for the host are not reachable, however they are spelled', async () => {
  for (const path of ['/init', '//init', '/./init', '/%69nit', '/x/../init', '/init/', '/init?x=1']) {
    const answer = await daemon.port(sandbox.sandboxId, 49983, path, { method: 'POST', body: '{}' });
    assert.ok([404, 400, 401].includes(answer.status), `${path}: ${answer.status}`);
  }
});

interface Detail {
  readonly envdAccessToken: string;
}

async function token(): Promise<string> {
  return ((await (await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`)).json()) as Detail).envdAccessToken;
}
