import assert from 'node:assert/strict';
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DiskOrigin } from '../contract.ts';
import { NbdClient } from '../nbd/testing/client.ts';
import { StorageHost } from './testing/fixture.ts';

const SIZE = 1024 * 1024;
const EMPTY: DiskOrigin = { kind: 'layers', layers: [] };
const uid = process.getuid?.() ?? 0;

/** Another daemon has read the records when it resolves. */
async function restart(host: StorageHost): Promise<void> {
  await host.killDaemon();
  // A question that is asked again where the one that died has heard it; what follows may not be.
  await host.supervisor.call('list', {});
}

/** What a disk begins with. */
async function read(host: StorageHost, origin: DiskOrigin): Promise<string> {
  const disk = await host.store.create('reader', { origin, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket);
  const text = (await client.read(0, 512)).toString('latin1').replace(/\0+$/, '');
  await disk.remove();
  return text;
}

/** A disk, and a snapshot of what is written to it. */
async function write(host: StorageHost, id: string): Promise<void> {
  const disk = await host.store.create(id, { origin: EMPTY, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket);
  await client.write(0, Buffer.from(`of ${id}`.padEnd(512, '\0')));
  await (await disk.snapshot(`${id}-kept`)).durable;
}

test('a record that something has cut off harms its own disk or snapshot alone, until it is whole again or removed', async () => {
  await using host = await StorageHost.open();
  for (const id of ['one', 'two']) await write(host, id);
  const layers = async () => (await readdir(join(host.daemon.root, 'layers'))).length;
  const before = await layers();
  const damaged = ['disks/one.json', 'snapshots/one-kept.json'].map((name) => join(host.daemon.root, name));
  const whole = await Promise.all(damaged.map((path) => readFile(path)));
  for (const path of damaged) await truncate(path, 40);
  await restart(host);

  const from = (snapshot: string): DiskOrigin => ({ kind: 'snapshot', snapshot });
  const refused = { code: 'ledger_failed', message: /one.*\.json is damaged/ };
  assert.equal(await read(host, from('two-kept')), 'of two');
  await assert.rejects(host.store.create('more', { origin: from('one-kept'), sizeBytes: SIZE }), refused);
  await assert.rejects(host.supervisor.call('flush', { disk: 'one', durability: 'strict' }), refused);
  await assert.rejects(host.store.create('one', { origin: EMPTY, sizeBytes: SIZE }), {
    message: /there is a disk one/,
  });
  assert.deepEqual((await host.supervisor.call('list', {})).disks, ['one', 'two']);
  assert.deepEqual(await host.store.listSnapshots(), ['one-kept', 'two-kept']);
  for (const path of damaged)
    assert.ok((await readFile(host.logFile, 'utf8')).includes(`the record ${path} is damaged`));

  for (const [at, path] of damaged.entries()) await writeFile(path, whole[at] ?? '');
  await restart(host);
  assert.equal(await read(host, from('one-kept')), 'of one');
  assert.equal(await layers(), before, 'nothing was taken for garbage');

  for (const path of damaged) await truncate(path, 40);
  await restart(host);
  await host.supervisor.call('remove', { disk: 'one' });
  await host.store.removeSnapshot('one-kept');
  assert.deepEqual((await host.supervisor.call('list', {})).disks, ['two']);
  await restart(host);
  assert.deepEqual(await host.store.listSnapshots(), ['two-kept']);
  assert.equal(await layers(), before / 2);
  assert.equal(await read(host, from('two-kept')), 'of two');
});
