import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { parseResolvConf, ResolvConf } from './resolv-conf.ts';

const addresses = (text: string) => parseResolvConf(text).map((upstream) => upstream.address);

test('the first three name servers count, in order', () => {
  const text =
    '# comment\nsearch example.com\nnameserver 192.0.2.1\n\tnameserver 2001:db8::1 # x\nnameserver 127.0.0.53\nnameserver 192.0.2.4\n';
  assert.deepEqual(addresses(text), ['192.0.2.1', '2001:db8::1', '127.0.0.53']);
});

test('lines that name no address are passed over, and without any the local host is asked', () => {
  assert.deepEqual(addresses('nameserver\nnameserver example.com\n;nameserver 192.0.2.1\nnameservers 192.0.2.1'), [
    '127.0.0.1',
  ]);
  assert.deepEqual(addresses(''), ['127.0.0.1']);
});

test('a change of the file is seen, and while the file is missing the last servers stay', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-network-resolv-'));
  const path = join(folder, 'resolv.conf');
  let now = 0;
  const clock = { now: () => now, sleep: async () => {} };
  try {
    await writeFile(path, 'nameserver 192.0.2.1\n');
    const conf = new ResolvConf(path, clock);
    const current = async () => (await conf.upstreams()).map((upstream) => upstream.address);
    assert.deepEqual(await current(), ['192.0.2.1']);
    await writeFile(`${path}.new`, 'nameserver 192.0.2.2\n');
    await rename(`${path}.new`, path);
    assert.deepEqual(await current(), ['192.0.2.1']);
    now += 1_000;
    assert.deepEqual(await current(), ['192.0.2.2']);
    await rm(path);
    now += 1_000;
    assert.deepEqual(await current(), ['192.0.2.2']);
  } finally {
    await rm(folder, { recursive: true });
  }
});
