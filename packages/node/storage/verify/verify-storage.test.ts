import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { cp, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { LayerWriter } from '@aenv/block/layers/commit/layer-writer.ts';
import { AssetCache } from '@aenv/guest/cache/asset-cache.ts';
import { convertLayout } from '@aenv/images/convert/from-layout.ts';
import { BlobCache } from '@aenv/images/lazy/blob-cache.ts';
import { lazyFolders } from '@aenv/images/lazy/folders.ts';
import { FakeOrigin } from '@aenv/images/lazy/testing/fake-origin.ts';
import { digestOf, TestLayout } from '@aenv/images/testing/layout.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import { sealJson } from '@aenv/platform/files/sealed-json.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { keepImageRecord } from '../../assets/images/image-record.ts';
import { AssetLab, keyOf } from '../../assets/testing/asset-lab.ts';
import { foldersOf } from '../../daemon/folders.ts';
import { layersState } from '../../snapshots/disks/disk-state.ts';
import { BASE_CHANGES, DELTA_CHANGES, Lab } from '../../snapshots/repository/testing/lab.ts';
import { statStorage } from '../stat.ts';
import type { VerifyProgress, VerifyStep } from './progress.ts';
import { verifyStorage } from './verify-storage.ts';

const MIB = 2 ** 20;

let lab: AssetLab;
before(async () => {
  lab = await AssetLab.open();
  const layers = await layersOfAnImage();
  await fetchedBlob();
  await guestArtefact();
  await repositories(layers);
  await remoteBlob();
  await disks(layers[0] ?? '');
  lab.referred.push(...layers);
  await lab.uses.refresh();
});
after(() => lab[Symbol.asyncDispose]());

const verify = (progress?: VerifyProgress) =>
  verifyStorage(lab.places.root, foldersOf({ home: lab.home, runtime: '' }), progress);

async function layersOfAnImage(): Promise<readonly string[]> {
  const layout = await TestLayout.in(join(lab.folder, 'layout'));
  await layout.index(await layout.image([tar({ name: 'etc/passwd', data: 'root:x:0:0::/root:/bin/sh\n' })]));
  const platform = { os: 'linux', architecture: 'amd64' };
  const options = { layersDir: lab.places.layers, sizeBytes: 64 * MIB, platform, log: silentLogger };
  const { digest, layers } = await convertLayout(layout.dir, options);
  const named = { name: `host/x:1@${digest}`, digest, diskSizeMb: 64, layers: [], pulledAt: new Date() };
  await keepImageRecord(lab.places.images, named);
  return layers.map(({ path }) => path);
}

async function fetchedBlob(): Promise<void> {
  const data = randomBytes(3000);
  const folder = join(lab.places.layers, `blob-${digestOf(data).replace(':', '-')}`);
  await mkdir(folder);
  await writeFile(join(folder, 'overlaybd.commit'), data);
}

async function guestArtefact(): Promise<void> {
  await new AssetCache(lab.places.guest).get({
    ...{ kind: 'kernel', digest: keyOf('kernel'), files: { vmlinux: 0o644 } },
    build: (entry) => writeFile(join(entry, 'vmlinux'), randomBytes(5000)),
  });
}

/** Snapshots with a memory base, one of them with a delta, in the home, and as a captured machine. */
async function repositories(layers: readonly string[]): Promise<void> {
  await using machines = await Lab.open();
  const facts = { disk: { state: layersState(layers), paths: [] } };
  for (const name of ['kernel', 'tools']) await writeFile(join(lab.folder, name), name);
  const boot = {
    kernel: { digest: 'k', path: join(lab.folder, 'kernel') },
    toolsDrive: { digest: 't', path: join(lab.folder, 'tools') },
  };
  await machines.snapshot('s1', BASE_CHANGES, { asNewBase: true, facts: { ...facts, ...boot } });
  const memoryBase = await machines.baseFileOf('s1');
  await machines.snapshot('s2', DELTA_CHANGES, { asNewBase: false, memoryBase, facts: { ...facts, ...boot } });
  await cp(machines.root, join(lab.home, 'snapshots'), { recursive: true });
  const machine = join(lab.places.machines, keyOf('machine'));
  await cp(machines.root, machine, { recursive: true });
  const { digest, sizeBytes } = await layerFile(join(machine, 'disk.layer'));
  await writeFile(join(machine, 'disk.json'), sealJson({ digest, sizeBytes }));
}

async function layerFile(path: string) {
  await mkdir(dirname(path), { recursive: true });
  const writer = await LayerWriter.create({ path, uuid: randomUUID(), virtualSize: 64 * MIB });
  await writer.append(randomBytes(4096), 8192);
  return await writer.finish();
}

async function remoteBlob(): Promise<void> {
  const data = randomBytes(200_000);
  const cache = await BlobCache.start({
    root: lazyFolders(join(lab.home, 'volumes/remote/0')).blobs,
    ...{ capacityBytes: 2 ** 30, keepFreeBytes: 0, offlineAfterMs: 1000, log: silentLogger },
  });
  const blob = await cache.open({ digest: digestOf(data), size: data.length, origin: new FakeOrigin(data) });
  await blob.read(Buffer.alloc(data.length), 0);
  await blob.close();
  await cache.close();
}

async function disks(layer: string): Promise<void> {
  const root = join(lab.home, 'volumes');
  const own = randomUUID();
  await layerFile(join(root, 'layers', own, 'overlaybd.sealed'));
  const layers = [
    { kind: 'file', path: layer },
    { kind: 'own', layer: own },
  ];
  for (const kind of ['disks', 'snapshots']) await mkdir(join(root, kind), { recursive: true });
  const common = { version: 1, sizeBytes: 64 * MIB, layers };
  const disk = { ...common, disk: 'i1', durability: 'relaxed', uppers: [randomUUID()], socket: null };
  await writeFile(join(root, 'disks/i1.json'), JSON.stringify(disk));
  await writeFile(join(root, 'snapshots/s1.json'), JSON.stringify({ ...common, snapshot: 's1' }));
}

/** A byte becomes another one. @returns what makes it what it was */
async function flip(path: string, at: number): Promise<() => Promise<void>> {
  const byte = Buffer.alloc(1);
  const write = async (value: number) => {
    await using file = await open(path, 'r+');
    await file.write(Buffer.from([value]), 0, 1, at);
  };
  await using file = await open(path, 'r');
  await file.read(byte, 0, 1, at);
  const [value = 0] = byte;
  await write(value ^ 0x11);
  return () => write(value);
}

/** What tells where other files are, and what they should be, is damaged in rounds of its own. */
const LEVELS = [/(manifest|layer|disk|seals)\.json$|\/index$|\/volumes\/(disks|snapshots)\//, /\/bases\//, /./];

/** Files with the places that are damaged, by the level that they are on. */
async function filesToDamage(): Promise<readonly (readonly (readonly [path: string, places: readonly number[]])[])[]> {
  const levels = LEVELS.map((): [string, number[]][] => []);
  for (const top of [lab.places.root, lab.home]) {
    for (const entry of await readdir(top, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || path === lab.places.lock) continue;
      const { length } = await readFile(path);
      // A record of the block daemon is checked by its form; of the seals, what the cache itself relies on; of a layer
      // that a sandbox wrote, header and trailer.
      const isForm = /\/volumes\/(disks|snapshots)\//.test(path) || entry.name === 'seals.json';
      const isOwn = path.includes('/volumes/layers/');
      const places = isForm ? [0] : isOwn ? [0, length - 4096] : [0, length >> 1, length - 1];
      levels[LEVELS.findIndex((form) => form.test(path))]?.push([path, places]);
    }
  }
  return levels;
}

test('what is whole is told to be, how much was read, and how far it is meanwhile', async () => {
  const steps: VerifyStep[] = [];
  const { problems, checkedBytes } = await verify((step) => steps.push(step));
  assert.deepEqual(problems, []);
  assert.ok(checkedBytes > 500_000, String(checkedBytes));
  const ended = steps.filter(({ done, of }) => done === of).map(({ what }) => what);
  for (const what of ['layer', 'machine', 'guest', 'image', 'home'] as const) assert.ok(ended.includes(what), what);
  assert.equal(steps.at(-1)?.checkedBytes, checkedBytes);
  const bytes = steps.map((step) => step.checkedBytes);
  assert.deepEqual(
    bytes,
    bytes.toSorted((a, b) => a - b),
  );
});

test('a flipped byte is found in every region of every kind of file, and the file is named', async () => {
  const kinds = new Set<string>();
  for (const files of await filesToDamage()) {
    for (const round of [0, 1, 2]) {
      const damaged = files.filter(([, places]) => places[round] !== undefined);
      const undo = await Promise.all(damaged.map(([path, places]) => flip(path, places[round] ?? 0)));
      const { problems } = await verify();
      for (const mend of undo) await mend();
      const named = new Set(problems.map(({ path }) => path));
      for (const [path, places] of damaged) {
        assert.ok(named.has(path), `${relative(lab.folder, path)} at ${places[round]}: ${[...named].join(', ')}`);
      }
      assert.equal(named.size, damaged.length, [...named].join(', '));
      for (const { artefact } of problems) kinds.add(artefact.replace(/ \d+$/, ''));
    }
  }
  assert.deepEqual((await verify()).problems, []);
  const all = ['manifest', 'manifest of the memory base', 'memory chunk', 'file of the memory base', 'memory delta'];
  all.push('device state', 'layer', 'record of a layer', 'model of a file system', 'part of a remote layer');
  for (const kind of all) assert.ok(kinds.has(kind), `${kind} in ${[...kinds].join(', ')}`);
});

test('a file that is missing is named', async () => {
  const [layer = ''] = lab.referred;
  const kept = await readFile(layer);
  await rm(layer, { force: true });
  const { problems } = await verify();
  assert.ok(problems.some(({ path }) => path === layer));
  await writeFile(layer, kept, { mode: 0o444 });
});

test('what is kept is told by kind, with what nobody refers to', async () => {
  const unneeded = await lab.layer('nobody');
  const { rows, freeBytes, totalBytes, unreadable } = await statStorage(
    lab.places.root,
    foldersOf({ home: lab.home, runtime: '' }),
  );
  assert.deepEqual(unreadable, []);
  assert.ok(freeBytes > 0 && totalBytes > freeBytes);
  const of = (what: string) => rows.find((row) => row.what === what);
  const layers = of('layers of images');
  assert.equal(layers?.count, lab.referred.length + 2);
  // The blob, and the one that was just made.
  assert.equal(layers?.unneeded, 2);
  assert.ok((layers?.unneededBytes ?? 0) >= 8192 && (layers?.bytes ?? 0) > (layers?.unneededBytes ?? 0));
  assert.equal(of('snapshots')?.count, 2);
  assert.equal(of('disks of sandboxes')?.count, 1);
  await rm(dirname(unneeded), { recursive: true });
});
