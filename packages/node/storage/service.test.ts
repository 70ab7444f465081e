import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { keepImageRecord } from '../assets/images/image-record.ts';
import { AssetLab, isThere, keyOf } from '../assets/testing/asset-lab.ts';
import { fullTemplate } from '../store/testing/records.ts';
import type { Template } from '../templates/contract.ts';
import { localLayers } from '../templates/layers.ts';
import { NodeStorage } from './service.ts';

const DAY = 86_400_000;
const NOTHING = { bases: 0, chunks: 0, files: 0, freedBytes: 0, blockedBy: [] };

let lab: AssetLab;
let templates: Template[];
let storage: NodeStorage;
const asked: number[] = [];

beforeEach(async () => {
  lab = await AssetLab.open();
  templates = [];
  asked.length = 0;
  storage = new NodeStorage({
    ...{ assetsDir: lab.places.root, home: lab.home, uses: lab.uses, keepMs: DAY, waitMs: 0 },
    templates: () => templates,
    own: {
      unnamedTemplates: (before) => asked.push(before),
      machines: async () => 2,
      snapshots: async () => NOTHING,
    },
    ...{ clock: systemClock, log: silentLogger },
  });
});
afterEach(() => lab[Symbol.asyncDispose]());

const code = (expected: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof AenvError, String(error));
  assert.equal(error.code, expected, error.message);
  assert.match(error.message, message);
  return true;
};

const digestOf = (name: string) => `sha256:${keyOf(name)}`;

/** An image of these layers that was pulled a while ago. */
async function pulled(name: string, layers: readonly string[]): Promise<void> {
  const paths = await Promise.all(layers.map((layer) => lab.layer(layer)));
  await keepImageRecord(lab.places.images, {
    ...{ name: `host/${name}:1@${digestOf(name)}`, digest: digestOf(name), diskSizeMb: 64, pulledAt: new Date() },
    layers: paths.map((path) => ({ digest: 'd', sizeBytes: 1, path })),
  });
}

async function template(alias: string, image: string, layers: readonly string[]): Promise<void> {
  const paths = await Promise.all(layers.map((layer) => lab.layer(layer)));
  const source = { imageDigest: digestOf(image), layers: localLayers(paths) };
  templates.push(fullTemplate({ templateId: `id${alias}`, aliases: [alias], source, diskSizeMb: 64 }));
  lab.referred.push(...paths);
}

test('images are told with what is theirs alone and what they share, and with who uses them', async () => {
  await pulled('a', ['low', 'a']);
  await pulled('b', ['low', 'b', 'b2']);
  await template('tools', 'a', ['low', 'a']);
  await template('base', 'made here', ['made here']);
  const images = await storage.images();
  const told = images.map(({ name, uniqueBytes, sharedBytes, bytes, layers, usedBy }) => {
    return [name.split('@')[0], uniqueBytes / 4096, sharedBytes / 4096, bytes / 4096, layers, usedBy.join()];
  });
  assert.deepEqual(told.sort(), [
    ['', 1, 0, 1, 1, 'template base'],
    ['host/a:1', 1, 1, 2, 2, 'template tools'],
    ['host/b:1', 2, 1, 3, 3, ''],
  ]);
});

test('an image that is used is not removed, and its users are named; one that is not goes, shared layers stay', async () => {
  await pulled('a', ['low', 'a']);
  await pulled('b', ['low', 'b']);
  await template('tools', 'a', ['low', 'a']);
  await assert.rejects(storage.removeImage('host/a:1'), code('image_in_use', /template tools/));
  const { freedBytes, removed } = await storage.removeImage(keyOf('b').slice(0, 8));
  assert.equal(freedBytes, 2 * 4096);
  assert.deepEqual(removed.map(({ kind }) => kind).sort(), ['image', 'layer']);
  assert.deepEqual((await storage.images()).length, 1);
  await assert.rejects(storage.removeImage('host/b:1'), code('image_not_found', /host\/b:1/));
  await assert.rejects(storage.removeImage(keyOf('a').slice(0, 5)), code('image_not_found', /is here/));
  // Without its template it is a disk that stands on it.
  templates.pop();
  lab.referred.length = 0;
  await mkdir(join(lab.home, 'volumes/disks'), { recursive: true });
  const disk = join(lab.home, 'volumes/disks/i1.json');
  const layers = [
    { kind: 'file', path: await lab.layer('low') },
    { kind: 'file', path: await lab.layer('a') },
  ];
  const uppers = [crypto.randomUUID()];
  const record = { version: 1, disk: 'i1', sizeBytes: 4096, durability: 'relaxed', layers, uppers, socket: null };
  await writeFile(disk, JSON.stringify(record));
  await lab.uses.refresh();
  await assert.rejects(storage.removeImage('host/a:1'), code('image_in_use', /disk i1/));
  await rm(disk);
  assert.equal((await storage.removeImage('host/a:1')).removed.length, 3);
  assert.deepEqual(await storage.images(), []);
});

test('images that nobody uses go together, young or not; what else there is stays', async () => {
  await pulled('a', ['low', 'a']);
  await pulled('b', ['low', 'b']);
  const kernel = await lab.guest('kernel', 'old');
  await template('tools', 'a', ['low', 'a']);
  const { removed } = await storage.collectImages();
  assert.deepEqual(removed.map(({ kind }) => kind).sort(), ['image', 'image', 'layer']);
  assert.ok(await isThere(kernel));
});

test('a collection asks all who keep something, and tells what each has removed', async () => {
  await pulled('a', ['a']);
  const kernel = await lab.guest('kernel', 'old');
  const collected = await storage.collect();
  assert.deepEqual([collected.machines, collected.templates, collected.snapshots], [2, 1, NOTHING]);
  // The image was pulled a moment ago.
  assert.deepEqual(
    collected.removed.map(({ kind }) => kind),
    ['guest'],
  );
  assert.ok(!(await isThere(kernel)));
  assert.ok(Math.abs((asked[0] ?? 0) - (Date.now() - DAY)) < 60_000);
  assert.equal((await storage.collect({ all: true })).removed.length, 2);
  assert.equal(asked[1], Number.POSITIVE_INFINITY);
  await writeFile(join(lab.places.homes, `${'0'.repeat(32)}.json`), 'x');
  await assert.rejects(storage.collect(), code('storage_unknown', /0{32}\.json/));
});
