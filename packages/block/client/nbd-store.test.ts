import assert from 'node:assert/strict';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { BlockDevice } from '../contract.ts';
import { NbdClient } from '../nbd/testing/client.ts';
import { StorageHost } from './testing/fixture.ts';

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;
const uid = process.getuid?.() ?? 0;

let host: StorageHost;
before(async () => {
  host = await StorageHost.open();
});
after(() => host[Symbol.asyncDispose]());

async function connect(disk: BlockDevice): Promise<NbdClient> {
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  return await NbdClient.connect(source.socket, { name: source.export });
}

test('a disk begins with its layers, keeps its own writes to itself, and is gone when it is removed', async () => {
  const base = await host.layer(SIZE, MIB);
  const origin = { kind: 'layers', layers: [base.path] } as const;
  const one = await host.store.create('one', { origin, sizeBytes: SIZE });
  const two = await host.store.create('two', { origin, sizeBytes: SIZE });
  await using a = await connect(one);
  await using b = await connect(two);
  assert.equal(a.size, SIZE);
  assert.ok((await a.read(0, MIB)).equals(base.data));
  await a.write(4096, Buffer.alloc(8192, 1));
  assert.ok((await b.read(0, MIB)).equals(base.data));
  assert.ok((await a.read(4096, 8192)).equals(Buffer.alloc(8192, 1)));
  assert.deepEqual(await host.store.list(), ['one', 'two']);
  assert.ok((await one.allocatedBytes()) > (await two.allocatedBytes()));
  await one.remove();
  await one.remove();
  await two.remove();
  assert.deepEqual(await host.store.list(), []);
  assert.deepEqual(await readdir(join(host.daemon.root, 'layers')), []);
  assert.deepEqual(await readdir(join(host.root, 'run', 'nbd')), []);
});

test('the second disk of a base adds less than 1 MiB', async () => {
  const base = await host.layer(SIZE, 8 * MIB);
  const disk = await host.store.create('small', { origin: { kind: 'layers', layers: [base.path] }, sizeBytes: SIZE });
  await using client = await connect(disk);
  await client.read(0, 8 * MIB);
  assert.ok((await disk.allocatedBytes()) < MIB);
  await disk.remove();
});

test('a snapshot holds what was written before it, lasts beyond its disk, and forks start from it', async () => {
  const disk = await host.store.create('source', { origin: { kind: 'layers', layers: [] }, sizeBytes: SIZE });
  {
    await using client = await connect(disk);
    await client.write(0, Buffer.alloc(MIB, 1));
    await disk.prepareSnapshot();
    const { durable, swapMs } = await disk.snapshot('first');
    assert.ok(swapMs < 200, `${swapMs} ms`);
    await client.write(0, Buffer.alloc(4096, 2));
    await durable;
    await (await disk.snapshot('second')).durable;
    assert.ok((await client.read(0, 4096)).equals(Buffer.alloc(4096, 2)));
    assert.ok((await client.read(4096, 4096)).equals(Buffer.alloc(4096, 1)));
    await assert.rejects(disk.snapshot('second'), { code: 'internal' });
  }
  await disk.remove();
  assert.deepEqual(await host.store.listSnapshots(), ['first', 'second']);
  const expected = [
    ['first', 1],
    ['second', 2],
  ] as const;
  for (const [snapshot, value] of expected) {
    const fork = await host.store.create(`of-${snapshot}`, { origin: { kind: 'snapshot', snapshot }, sizeBytes: SIZE });
    await using client = await connect(fork);
    assert.ok((await client.read(0, 4096)).equals(Buffer.alloc(4096, value)));
    assert.ok((await client.read(4096, 4096)).equals(Buffer.alloc(4096, 1)));
    await host.store.removeSnapshot(snapshot);
    assert.ok((await client.read(4096, 4096)).equals(Buffer.alloc(4096, 1)));
    await fork.remove();
  }
  assert.deepEqual(await readdir(join(host.daemon.root, 'layers')), []);
});

test('a snapshot that could not be prepared is none, and the next one can', async () => {
  const disk = await host.store.create('once', { origin: { kind: 'layers', layers: [] }, sizeBytes: SIZE });
  await using client = await connect(disk);
  await client.write(0, Buffer.alloc(4096, 1));
  const record = join(host.daemon.root, 'disks', 'once.json');
  await rename(record, `${record}.aside`);
  // A folder in its place: nothing can be written there.
  await mkdir(join(record, 'x'), { recursive: true });
  await assert.rejects(disk.prepareSnapshot());
  await assert.rejects(disk.snapshot('never'));
  await rm(record, { recursive: true });
  await rename(`${record}.aside`, record);
  await (await disk.snapshot('later')).durable;
  await client.write(4096, Buffer.alloc(4096, 2));
  await host.killDaemon();
  await host.supervisor.call('list', {});
  await using again = await connect(disk);
  const both = Buffer.concat([Buffer.alloc(4096, 1), Buffer.alloc(4096, 2)]);
  assert.ok((await again.read(0, 8192)).equals(both));
  assert.deepEqual(await host.store.listSnapshots(), ['later']);
  await disk.remove();
  await host.store.removeSnapshot('later');
});

test('a base that is no layer is refused, and leaves nothing', async () => {
  const origin = { kind: 'layers', layers: [join(host.root, 'blockd.log')] } as const;
  await assert.rejects(host.store.create('bad', { origin, sizeBytes: SIZE }), { code: 'layer_corrupt' });
  const absent = { kind: 'layers', layers: ['/nowhere/at/all'] } as const;
  await assert.rejects(host.store.create('bad', { origin: absent, sizeBytes: SIZE }), { code: 'layer_corrupt' });
  const nothing = { kind: 'snapshot', snapshot: 'nothing' } as const;
  await assert.rejects(host.store.create('bad', { origin: nothing, sizeBytes: SIZE }), { code: 'internal' });
  await assert.rejects(host.store.create('../bad', { origin: absent, sizeBytes: SIZE }), { code: 'internal' });
  assert.deepEqual(await host.store.list(), []);
  assert.deepEqual(await readdir(join(host.daemon.root, 'layers')), []);
});

test('sockets and files are for nobody else', async () => {
  const disk = await host.store.create('private', { origin: { kind: 'layers', layers: [] }, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  const mode = async (path: string) => (await stat(path)).mode & 0o7777;
  assert.equal(await mode(source.socket), 0o660);
  assert.equal(await mode(join(source.socket, '..')), 0o2710);
  assert.equal(await mode(join(host.daemon.runtime, 'control.sock')), 0o600);
  assert.equal(await mode(host.daemon.root), 0o700);
  assert.equal(await mode(host.daemon.runtime), 0o700);
  await disk.remove();
});
