import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmod,
  link,
  lstat,
  lutimes,
  mkdir,
  readdir,
  readFile,
  readlink,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { UnpackAnswer } from '@aenv/contracts/envd/archive.ts';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { encodePax } from './pax.ts';
import { BLOCK, encodeHeader, paddingOf } from './tar-header.ts';

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

const url = (path: string, username = '') => `${envd.url}/aenv/archive?${new URLSearchParams({ path, username })}`;
const get = async (path: string) => {
  const response = await fetch(url(path));
  assert.equal(response.status, 200, await response.clone().text());
  return { kind: response.headers.get('x-aenv-archive-kind'), bytes: Buffer.from(await response.arrayBuffer()) };
};
const post = (path: string, body: Uint8Array, username?: string, headers = {}) =>
  fetch(url(path, username), { method: 'POST', body: new Uint8Array(body), headers });

interface Planted {
  readonly name: string;
  readonly type?: string;
  readonly link?: string;
  readonly text?: string;
}

/** An archive with whatever names one likes. */
function tarOf(entries: readonly Planted[]): Buffer {
  const blocks = entries.map(({ name, type = '0', link: linkName = '', text = '' }) => {
    const body = Buffer.from(text);
    const header = encodeHeader({ name, mode: 0o644, size: body.length, mtime: 0, typeFlag: type, linkName });
    return Buffer.concat([header, body, Buffer.alloc(paddingOf(body.length))]);
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

const LONG = `${'long-name/'.repeat(20)}${'n'.repeat(200)}`;

async function plantTree(root: string): Promise<void> {
  await mkdir(join(root, 'empty'), { recursive: true });
  await mkdir(join(root, 'long-name/'.repeat(20)), { recursive: true });
  await writeFile(join(root, LONG), 'long');
  await writeFile(join(root, 'plain'), 'plain');
  await writeFile(join(root, '日本語 🦀'), 'x'.repeat(5000));
  await writeFile(join(root, 'setuid'), 'x');
  await chmod(join(root, 'setuid'), 0o4755);
  await chmod(join(root, 'plain'), 0o600);
  await symlink('plain', join(root, 'relative'));
  await symlink('/etc/hostname', join(root, 'absolute'));
  await symlink('missing', join(root, 'dangling'));
  await symlink('loop', join(root, 'loop'));
  await link(join(root, 'plain'), join(root, 'same'));
  await utimes(join(root, 'plain'), 1_600_000_000.25, 1_600_000_000.25);
  await lutimes(join(root, 'relative'), 1_500_000_000, 1_500_000_000);
  await utimes(join(root, 'empty'), 1_400_000_000, 1_400_000_000);
  await chmod(join(root, 'empty'), 0o1777);
}

const listing = (root: string) =>
  execFileSync('find', ['.', '-mindepth', '1', '-printf', '%p %y %m %Ts %l %n\n'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .toSorted();

test('a tree goes down and up again unchanged', async () => {
  await plantTree(join(dir, 'a'));
  const { kind, bytes } = await get(join(dir, 'a'));
  assert.equal(kind, 'directory');
  const response = await post(join(dir, 'new/b'), bytes);
  assert.equal(response.status, 200);
  assert.deepEqual(((await response.json()) as UnpackAnswer).skipped, []);
  assert.deepEqual(listing(join(dir, 'new/b')), listing(join(dir, 'a')));
  execFileSync('diff', ['-r', '--no-dereference', join(dir, 'a'), join(dir, 'new/b')]);
  assert.equal((await lstat(join(dir, 'new/b/plain'))).mtimeMs, 1_600_000_000_250);
});

test('tar reads what envd packs, and envd unpacks what tar makes', async () => {
  await plantTree(join(dir, 'a'));
  await mkdir(join(dir, 'b'));
  execFileSync('tar', ['-x', '-p', '-C', join(dir, 'b')], { input: (await get(join(dir, 'a'))).bytes });
  assert.deepEqual(listing(join(dir, 'b')), listing(join(dir, 'a')));
  for (const format of ['gnu', 'pax']) {
    const made = execFileSync('tar', ['-c', `--format=${format}`, '-C', join(dir, 'a'), '.']);
    const response = await post(join(dir, format), gzipSync(made), '', { 'content-encoding': 'gzip' });
    assert.equal(response.status, 200, await response.text());
    execFileSync('diff', ['-r', '--no-dereference', join(dir, 'a'), join(dir, format)]);
  }
});

test('a single file and a link are one entry with their base name', async () => {
  await writeFile(join(dir, 'f'), 'text');
  await symlink('f', join(dir, 'l'));
  const file = await get(join(dir, 'f'));
  assert.equal(file.kind, 'file');
  assert.equal(execFileSync('tar', ['-t'], { input: file.bytes, encoding: 'utf8' }), 'f\n');
  const linked = await get(join(dir, 'l'));
  assert.match(execFileSync('tar', ['-tv'], { input: linked.bytes, encoding: 'utf8' }), /^l.* l -> f\n$/);
});

test('what cannot travel is named at the end and left out', async () => {
  await writeFile(join(dir, 'f'), 'text');
  execFileSync('mkfifo', [join(dir, 'fifo')]);
  await writeFile(Buffer.concat([Buffer.from(`${dir}/bad-`), Buffer.from([0xff])]), 'x');
  const server = createServer().listen(join(dir, 'socket'));
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    const { bytes } = await get(dir);
    assert.match(bytes.toString('latin1'), /AENV\.report=skipped\n/);
    const report = execFileSync('tar', ['-x', '-O', '.aenv-skipped.json'], {
      input: bytes,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    assert.deepEqual(JSON.parse(report.toString()), [
      { path: 'bad-\ufffd', reason: 'name' },
      { path: 'fifo', reason: 'fifo' },
      { path: 'socket', reason: 'socket' },
    ]);
    const answer = (await (
      await post(
        join(dir, 'out'),
        tarOf([
          { name: 'p', type: '6' },
          { name: 'f', text: '1' },
        ]),
      )
    ).json()) as UnpackAnswer;
    assert.deepEqual(answer, { entries: 1, bytes: 1, skipped: [{ path: 'p', reason: 'fifo' }] });
  } finally {
    server.close();
  }
});

test('unpacked files belong to the user', async () => {
  assert.equal(
    (
      await post(
        join(dir, 'out'),
        tarOf([
          { name: 'd/f', text: 'x' },
          { name: 'l', type: '2', link: 'd' },
        ]),
        'nobody',
      )
    ).status,
    200,
  );
  for (const name of ['', 'd', 'd/f', 'l']) assert.equal((await lstat(join(dir, 'out', name))).uid, 65534, name);
});

test('hostile archives are refused, and nothing is written outside', async () => {
  const outside = join(dir, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'victim'), 'safe');
  const cases: [string, Planted[]][] = [
    ['parent', [{ name: '../outside/x', text: 'x' }]],
    ['parent in the middle', [{ name: 'a/../../outside/x', text: 'x' }]],
    ['absolute', [{ name: join(outside, 'x'), text: 'x' }]],
    [
      'through a link',
      [
        { name: 's', type: '2', link: outside },
        { name: 's/x', text: 'x' },
      ],
    ],
    [
      'folder over a link',
      [
        { name: 's', type: '2', link: outside },
        { name: 's', type: '5' },
        { name: 's/x', text: 'x' },
      ],
    ],
    ['hard link to outside', [{ name: 'h', type: '1', link: '../outside/victim' }]],
    ['hard link by absolute name', [{ name: 'h', type: '1', link: join(outside, 'victim') }]],
    [
      'hard link through a link',
      [
        { name: 's', type: '2', link: outside },
        { name: 'h', type: '1', link: 's/victim' },
        { name: 'h', text: 'x' },
      ],
    ],
    [
      'hard link to a link',
      [
        { name: 's', type: '2', link: join(outside, 'victim') },
        { name: 'h', type: '1', link: 's' },
      ],
    ],
    ['empty link target', [{ name: 's', type: '2', link: '' }]],
    [
      'long name',
      [
        { name: 'n'.repeat(99), type: 'L', text: `${'n'.repeat(300)}\0` },
        { name: 'x', text: 'x' },
      ],
    ],
  ];
  for (const [name, entries] of cases) {
    const response = await post(join(dir, name), tarOf(entries));
    assert.equal(response.status, 400, name);
    assert.equal(typeof ((await response.json()) as { message: string }).message, 'string');
  }
  // Writing to a link replaces the link.
  await post(
    join(dir, 'over'),
    tarOf([
      { name: 's', type: '2', link: join(outside, 'victim') },
      { name: 's', text: 'new' },
    ]),
  );
  assert.equal(await readFile(join(dir, 'over/s'), 'utf8'), 'new');
  assert.deepEqual(await readdir(outside), ['victim']);
  assert.equal(await readFile(join(outside, 'victim'), 'utf8'), 'safe');
});

test('damaged archives are 400, wherever they are cut', async () => {
  const whole = tarOf([{ name: 'f', text: 'x'.repeat(600) }]);
  for (const cut of [0, 1, 511, 512, 700, 1112, 1535]) {
    const response = await post(join(dir, 'cut'), whole.subarray(0, cut));
    assert.equal(response.status, 400, `cut at ${cut}`);
  }
  const flipped = Buffer.from(whole);
  flipped[10] = 1;
  assert.equal((await post(join(dir, 'flip'), flipped)).status, 400);
  const bomb = encodeHeader({ name: 'x', mode: 0, size: 2 ** 32, mtime: 0, typeFlag: 'x', linkName: '' });
  assert.equal((await post(join(dir, 'bomb'), bomb)).status, 400);
  const pax = encodePax(new Map([['path', '../x']]));
  assert.equal((await post(join(dir, 'pax'), Buffer.concat([pax, tarOf([{ name: 'f' }])]))).status, 400);
});

test('files are replaced, folders kept, and a folder is not replaced by a file', async () => {
  await mkdir(join(dir, 'd'));
  await writeFile(join(dir, 'd/kept'), '');
  await writeFile(join(dir, 'f'), 'old');
  await symlink('f', join(dir, 'l'));
  assert.equal(
    (
      await post(
        dir,
        tarOf([
          { name: 'd/', type: '5' },
          { name: 'f', text: 'new' },
          { name: 'l', type: '2', link: 'd' },
        ]),
      )
    ).status,
    200,
  );
  assert.deepEqual(await readdir(join(dir, 'd')), ['kept']);
  assert.equal(await readFile(join(dir, 'f'), 'utf8'), 'new');
  assert.equal(await readlink(join(dir, 'l')), 'd');
  assert.equal((await post(dir, tarOf([{ name: 'd', text: 'x' }]))).status, 400);
});

test('missing, unknown user, wrong kind', async () => {
  assert.equal((await fetch(url(join(dir, 'missing')))).status, 404);
  assert.equal((await fetch(url(dir, 'ghost'))).status, 401);
  assert.equal((await fetch(url('/dev/null'))).status, 400);
  await writeFile(join(dir, 'f'), '');
  assert.equal((await post(join(dir, 'f'), tarOf([]))).status, 400);
});
