import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import { NbdClient } from '@aenv/block/nbd/testing/client.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { RegistryFixture } from '../testing/registry-fixture.ts';
import { remoteLayerOf } from './remote-layer.ts';

const MIB = 1024 * 1024;
const SIZE = 256 * MIB;
const MODULE = fileURLToPath(new URL('layer-sources.ts', import.meta.url));
const EIO = 5;

let fixture: RegistryFixture;
before(async () => {
  fixture = await RegistryFixture.start();
});
after(() => fixture.close());

test('a disk is served from a layer that is in a registry: only what is read is fetched, and a lost network is an I/O error', async () => {
  const front = await fixture.front();
  const config = join(fixture.dir, 'sources.json');
  const registry = { search: [], insecure: [front.host], mirrors: [], ca: [], dockerConfig: join(fixture.dir, 'none') };
  await writeFile(
    config,
    JSON.stringify({
      registry,
      cacheBytes: 2 ** 30,
      cacheKeepFreeBytes: 0,
      offlineAfterSeconds: 1,
      completeAfterSeconds: null,
    }),
  );
  await using host = await StorageHost.open({ daemon: { 'sources-module': MODULE, 'sources-config': config } });
  const layer = await host.layer(SIZE, 64 * MIB);
  const blob = await readFile(layer.path);
  await pushBlob({ base: fixture.base, repository: 'r' }, blob);
  const remote = { host: front.host, repository: 'r', digest: digestOf(blob), size: blob.length };
  const origin = { kind: 'layers', layers: [remoteLayerOf(remote)] } as const;
  const disk = await host.store.create('d', { origin, sizeBytes: SIZE });
  const source = await disk.attach(process.getuid?.() ?? 0);
  assert.ok(source.kind === 'nbd');
  await using client = await NbdClient.connect(source.socket, { structured: true });
  assert.ok((await client.read(3 * MIB, MIB)).equals(layer.data.subarray(3 * MIB, 4 * MIB)));
  const fetched = front.matching(/blobs/).reduce((sum, { headers }) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(headers.range)) ?? [];
    return sum + Number(to) - Number(from) + 1;
  }, 0);
  assert.ok(fetched < 8 * MIB, `${fetched} bytes were fetched`);
  await client.write(32 * MIB, Buffer.alloc(4096, 1));

  front.rule = (exchange) => exchange.reply(503);
  assert.ok((await client.read(3 * MIB, MIB)).equals(layer.data.subarray(3 * MIB, 4 * MIB)), 'what is here is here');
  assert.equal(await client.errno({ type: 0, offset: BigInt(50 * MIB), length: 4096 }), EIO);
  assert.ok((await client.read(32 * MIB, 4096)).equals(Buffer.alloc(4096, 1)), 'and so is what was written');
  front.rule = () => {};
  assert.ok((await client.read(50 * MIB, 4096)).equals(layer.data.subarray(50 * MIB, 50 * MIB + 4096)));
  await disk.remove();
});
