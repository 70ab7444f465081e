import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NbdClient } from '../nbd/testing/client.ts';
import { StorageHost } from './testing/fixture.ts';

const MIB = 1024 * 1024;
const SIZE = 32 * MIB;
const uid = process.getuid?.() ?? 0;
const MODULE = fileURLToPath(new URL('testing/slow-sources.ts', import.meta.url));

test('layers that a module reads on demand are layers like others; what waits for them holds up nothing else', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-sources-'));
  t.after(() => rm(folder, { recursive: true }));
  const config = join(folder, 'sources.json');
  await writeFile(config, JSON.stringify({ delayMs: 300 }));
  await using host = await StorageHost.open({ daemon: { 'sources-module': MODULE, 'sources-config': config } });
  const base = await host.layer(SIZE, MIB);
  const remote = { key: 'sha256:base', source: { path: base.path } };
  const origin = { kind: 'layers', layers: [remote] } as const;
  const disk = await host.store.create('remote', { origin, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket, { structured: true });
  const reading = client.read(0, MIB);
  await client.write(2 * MIB, Buffer.alloc(4096, 1));
  assert.ok((await client.read(2 * MIB, 4096)).equals(Buffer.alloc(4096, 1)));
  assert.equal(client.answered.length, 2, 'the slow read is still under way');
  assert.ok((await reading).equals(base.data));
  await disk.snapshot('s').then(({ durable }) => durable);
  await host.killDaemon();
  await host.supervisor.call('list', {});
  await using again = await NbdClient.connect(source.socket);
  assert.ok((await again.read(0, 4096)).equals(base.data.subarray(0, 4096)), 'after a restart, too');
  const unknown = { kind: 'layers', layers: [{ key: 'sha256:none', source: {} }] } as const;
  await assert.rejects(host.store.create('bad', { origin: unknown, sizeBytes: SIZE }), { code: 'layer_unavailable' });
  await disk.remove();
  await host.supervisor.close();
  const notes = await readFile(join(host.daemon.root, 'remote', '0', 'notes'), 'utf8');
  assert.equal(notes, 'open sha256:base\nopen sha256:base\nclosed\n');
});

test('without such a module a remote layer is refused by name', async () => {
  await using host = await StorageHost.open();
  const origin = { kind: 'layers', layers: [{ key: 'sha256:base', source: {} }] } as const;
  await assert.rejects(host.store.create('d', { origin, sizeBytes: SIZE }), {
    code: 'layer_unavailable',
    message: /sha256:base/,
  });
  assert.deepEqual(await host.store.list(), []);
});
