import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { StorageHost } from '../../client/testing/fixture.ts';
import { NbdClient } from '../../nbd/testing/client.ts';

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;
const EMPTY = { kind: 'layers', layers: [] } as const;
const uid = process.getuid?.() ?? 0;

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, what);
    await delay(20);
  }
}

test('a chain that grows with snapshots is merged; snapshots keep what they have', async () => {
  await using host = await StorageHost.open({ daemon: { 'max-layers': 6 } });
  const base = await host.layer(SIZE, MIB);
  const disk = await host.store.create('chain', { origin: { kind: 'layers', layers: [base.path] }, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket);
  const model = Buffer.alloc(MIB);
  base.data.copy(model);
  for (let round = 1; round <= 12; round++) {
    const data = Buffer.alloc(32_768, round);
    await client.write(round * 20_480, data);
    data.copy(model, round * 20_480);
    assert.equal(await client.errno({ type: 6, offset: BigInt(round * 4096), length: 4096 }), 0);
    model.fill(0, round * 4096, (round + 1) * 4096);
    await (await disk.snapshot(`s${round}`)).durable;
  }
  await until('the chain is short', async () => {
    const { layers } = await host.supervisor.call('stat', { disk: 'chain' });
    return layers <= 6;
  });
  assert.ok((await client.read(0, MIB)).equals(model));
  for (let round = 1; round <= 12; round++) await host.store.removeSnapshot(`s${round}`);
  const { layers } = await host.supervisor.call('compact', { disk: 'chain' });
  assert.equal(layers, 2);
  assert.ok((await client.read(0, MIB)).equals(model));
  // The base is not in that folder: the merged layer, the upper, perhaps one that is prepared.
  await until('merged layers are gone', async () => (await readdir(join(host.daemon.root, 'layers'))).length <= 3);
  await host.killDaemon();
  await host.supervisor.call('list', {});
  await using again = await NbdClient.connect(source.socket);
  assert.ok((await again.read(0, MIB)).equals(model), 'the same after a restart');
  await (await disk.snapshot('merged')).durable;
  const own = await host.store.ownLayersOf('merged');
  assert.equal(own.length, 2, 'what was merged, and what was written since');
  for (const path of own) assert.ok((await stat(path)).size > 0, path);
  assert.deepEqual(await host.store.layersOf('merged'), [base.path, ...own]);
});

test('an upper that is mostly garbage is written anew while it is in use, and the space comes back', async () => {
  await using host = await StorageHost.open({ daemon: { 'min-garbage-bytes': 4 * MIB, 'look-ms': 100 } });
  const disk = await host.store.create('churn', { origin: EMPTY, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket);
  let value = 0;
  // So often that what each of them keeps would be too much together.
  await until('garbage is collected while there is writing', async () => {
    for (let end = value + 8; value < end; ) {
      value++;
      await client.write((value % 4) * MIB, Buffer.alloc(MIB, value & 255));
    }
    return (await host.supervisor.call('counters', {})).compactions >= 5;
  });
  await until('garbage is collected', async () => (await disk.allocatedBytes()) < 16 * MIB);
  for (let at = 0; at < 4; at++) {
    const last = value - ((((value - at) % 4) + 4) % 4);
    assert.ok((await client.read(at * MIB, MIB)).equals(Buffer.alloc(MIB, last & 255)), `block ${at}`);
  }
});
