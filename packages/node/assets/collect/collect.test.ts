import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, open, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Clock, systemClock } from '@aenv/platform/clock/clock.ts';
import type { SnapshotFacts } from '../../snapshots/contract.ts';
import { layersState } from '../../snapshots/disks/disk-state.ts';
import { Lab } from '../../snapshots/repository/testing/lab.ts';
import { HomeUses } from '../homes/home-uses.ts';
import { keepImageRecord } from '../images/image-record.ts';
import { AssetLab, isThere, keyOf } from '../testing/asset-lab.ts';

let lab: AssetLab;
beforeEach(async () => {
  lab = await AssetLab.open();
});
afterEach(() => lab[Symbol.asyncDispose]());

const code = (expected: string) => (error: unknown) => error instanceof AenvError && error.code === expected;

/** A snapshot in the repository `folder/snapshots`. */
async function snapshot(
  folder: string,
  id: string,
  [layers, kernel, tools]: readonly [readonly string[], string, string],
  vmm: Partial<SnapshotFacts> = {},
) {
  await using machines = await Lab.open();
  const facts = {
    disk: { state: layersState(layers), paths: [] },
    kernel: { digest: 'k', path: kernel },
    toolsDrive: { digest: 't', path: tools },
    ...vmm,
  };
  await machines.snapshot(id, [], { facts });
  await cp(machines.root, folder, { recursive: true });
}

test('what ledger, disks and snapshots of a home refer to stays, and what was used lately; the rest goes', async () => {
  const kept = {
    template: await lab.layer('template'),
    disk: await lab.layer('disk'),
    diskSnapshot: await lab.layer('disk snapshot'),
    snapshot: await lab.layer('snapshot'),
    kernel: await lab.guest('kernel', 'old'),
    tools: await lab.guest('tools', 'old'),
    young: await lab.layer('young', 1),
    open: await lab.layer('open'),
  };
  const gone = [await lab.layer('nobody'), await lab.guest('kernel', 'older'), await lab.guest('tools', 'older')];
  lab.referred.push(kept.template);
  await lab.uses.refresh();
  const record = (key: string, name: string, path: string) =>
    JSON.stringify({
      ...{ version: 1, sizeBytes: 4096, layers: [{ kind: 'file', path }] },
      ...(key === 'disk' ? { disk: name, durability: 'relaxed', uppers: [crypto.randomUUID()], socket: null } : {}),
      ...(key === 'snapshot' ? { snapshot: name } : {}),
    });
  await mkdir(join(lab.home, 'volumes/disks'), { recursive: true });
  await mkdir(join(lab.home, 'volumes/snapshots'), { recursive: true });
  await writeFile(join(lab.home, 'volumes/disks/d1.json'), record('disk', 'd1', kept.disk));
  await writeFile(join(lab.home, 'volumes/snapshots/s1.json'), record('snapshot', 's1', kept.diskSnapshot));
  await snapshot(join(lab.home, 'snapshots'), 's1', [[kept.snapshot], kept.kernel, kept.tools]);
  await using file = await open(kept.open);

  const preview = await lab.collect({ dryRun: true });
  assert.equal(preview.removed.length, 3);
  for (const path of gone) assert.ok(await isThere(path));
  const report = await lab.collect();
  assert.deepEqual(report, preview);
  assert.equal(report.freedBytes, 3 * 4096);
  for (const [what, path] of Object.entries(kept)) assert.ok(await isThere(path), what);
  for (const path of gone) assert.ok(!(await isThere(path)), path);
  assert.deepEqual(await readdir(lab.places.trash), []);
  await file.close();
  assert.equal((await lab.collect()).removed.length, 1);
});

test('a machine that stays keeps its layers, kernel and tools; so does an image', async () => {
  const layers = [await lab.layer('a'), await lab.layer('b')];
  const kernel = await lab.guest('kernel', 'k');
  const tools = await lab.guest('tools', 't');
  const machine = join(lab.places.machines, keyOf('machine'));
  await snapshot(machine, 'm1', [layers, kernel, tools]);
  const image = { name: 'host/x:1', digest: `sha256:${keyOf('image')}`, diskSizeMb: 4, pulledAt: new Date() };
  await keepImageRecord(lab.places.images, {
    ...image,
    layers: [{ digest: 'c', sizeBytes: 1, path: await lab.layer('c') }],
  });
  // Both were made a moment ago.
  assert.deepEqual((await lab.collect()).removed, []);

  await lab.age(machine, 100);
  lab.referred.push(join(machine, 'disk.layer'));
  await lab.uses.refresh();
  const images = await lab.collect({
    isKept: ({ kind, usedAt }) => kind !== 'image' && usedAt > Date.now() - 86_400_000,
  });
  assert.deepEqual(images.removed.map(({ kind }) => kind).sort(), ['image', 'layer']);
  lab.referred.pop();
  await lab.uses.refresh();
  const kinds = (await lab.collect()).removed.map(({ kind }) => kind).sort();
  assert.deepEqual(kinds, ['guest', 'guest', 'layer', 'layer', 'machine']);
});

test('what cannot be read may refer to anything: nothing is removed, and it is named', async () => {
  const layer = await lab.layer('nobody');
  await lab.uses.refresh();
  const bad = join(lab.home, 'volumes/disks/d1.json');
  await mkdir(join(lab.home, 'volumes/disks'), { recursive: true });
  await writeFile(bad, '{"version":2}');
  assert.deepEqual(await lab.collect(), { removed: [], freedBytes: 0, blockedBy: [bad] });
  await rm(bad);
  const [name = ''] = await readdir(lab.places.homes);
  const homeFile = join(lab.places.homes, name);
  await writeFile(homeFile, 'x');
  assert.deepEqual((await lab.collect()).blockedBy, [homeFile]);
  assert.ok(await isThere(layer));
});

test('nothing is collected while something is being made, and what is claimed stays when it is done', async () => {
  const layer = await lab.layer('new', 100);
  const made = Promise.withResolvers<void>();
  const claimed = Promise.withResolvers<void>();
  const making = lab.uses.during(async (claim) => {
    await claim([layer]);
    claimed.resolve();
    await made.promise;
    lab.referred.push(layer);
  });
  await claimed.promise;
  await assert.rejects(lab.collect(), code('storage_busy'));
  made.resolve();
  await making;
  // Its own process wrote nothing since: the claim is still what others see.
  assert.deepEqual((await lab.collect()).removed, []);
  await lab.uses.refresh();
  assert.deepEqual((await lab.collect()).removed, []);
  await assert.rejects(
    lab.uses.during(async (claim) => {
      await claim([await lab.layer('given up')]);
      throw new Error('no');
    }),
  );
  await lab.uses.refresh();
  assert.equal((await lab.collect()).removed.length, 1);
});

test('several homes use the same folder, by different ways; one that has gone is forgotten after a while', async () => {
  const layer = await lab.layer('shared');
  const way = join(lab.folder, 'another-way');
  await symlink(lab.places.root, way);
  const home = join(lab.folder, 'other');
  await mkdir(home);
  const referred = () => [layer.replace(lab.places.root, way)];
  await new HomeUses({ assetsDir: way, home, referred, clock: systemClock }).refresh();
  assert.deepEqual((await lab.collect()).removed, []);
  await rm(home, { recursive: true });
  assert.deepEqual((await lab.collect()).removed, []);
  const [file = ''] = await readdir(lab.places.homes);
  await lab.age(join(lab.places.homes, file), 100);
  assert.equal((await lab.collect()).removed.length, 1);
  assert.deepEqual(await readdir(lab.places.homes), []);
});

test('what a collection or a builder that was killed has left goes with the next one', async () => {
  await lab.uses.refresh();
  await lab.file(join(lab.places.trash, 'x', 'y'), 'x');
  const dead = join(lab.places.layers, '.work-1-1-000000000000');
  await lab.file(join(dead, 'result'), 'x');
  await lab.layer('nobody');
  assert.equal((await lab.collect()).removed.length, 1);
  assert.deepEqual(await readdir(lab.places.trash), []);
  assert.ok(!(await isThere(dead)));
});

test('a QEMU goes that no home, no captured machine and no process needs, and that was not the last one in use', async () => {
  const suites = ['buster', 'bullseye', 'bookworm', 'trixie', 'trixie-backports', 'sid'] as const;
  const [owned, captured, running, idle, young, last] = suites;
  const folder = (suite: string) => join(lab.places.root, `qemu-${suite}`);
  for (const [index, suite] of suites.entries()) {
    const packages = [{ name: 'qemu-system-x86', version: `1:9.0.${index}+ds-1` }];
    await lab.file(join(folder(suite), 'packages.json'), JSON.stringify({ suite, packages }, undefined, 2));
    const program = join(folder(suite), 'bin/qemu-system-x86_64');
    await lab.file(program, '');
    await lab.age(folder(suite), suite === last ? 90 : 100);
  }
  lab.referred.push(join(folder(owned), 'bin/qemu-system-x86_64'));
  await lab.uses.refresh();
  const build = { version: `9.0.${suites.indexOf(captured)}`, accelerator: 'tcg', machine: 'microvm' } as const;
  await snapshot(join(lab.home, 'snapshots'), 's1', [[], '/kernel', '/tools'], { vmm: { kind: 'qemu', build } });
  await cp('/bin/sleep', join(folder(running), 'bin/qemu-system-x86_64'));
  const vm = spawn(join(folder(running), 'bin/qemu-system-x86_64'), ['60'], { stdio: 'ignore' });
  try {
    await once(vm, 'spawn');
    await lab.age(folder(young), 1);
    await lab.age(folder(last), 0.5);
    assert.deepEqual(
      (await lab.collect()).removed.map(({ kind, path }) => [kind, path]),
      [['vmm', folder(idle)]],
    );
    const all = (await lab.collect({ isKept: () => false })).removed.map(({ path }) => path);
    assert.deepEqual(all, [folder(young)], 'only the one that was used last');
  } finally {
    vm.kill('SIGKILL');
    await once(vm, 'exit');
  }
  const rest = (await lab.collect({ isKept: () => false })).removed.map(({ path }) => path);
  assert.deepEqual(rest, [folder(running)]);
});

test('packages of Debian stay for a day after they were fetched', async () => {
  const [old, list] = ['x_1_amd64.deb', 'list'].map((name) => join(lab.places.packages, name));
  await lab.file(old ?? '', 'x');
  await lab.file(list ?? '', 'x');
  await lab.collect();
  assert.ok(await isThere(old ?? ''), 'its times are those of the mirror');
  const clock: Clock = Object.assign(Object.create(systemClock), { now: () => systemClock.now() + 25 * 3_600_000 });
  await lab.collect({ clock });
  assert.ok(!(await isThere(old ?? '')));
  assert.ok(await isThere(list ?? ''));
});

test('a folder of assets that is not there has nothing to collect', async () => {
  await rm(lab.places.root, { recursive: true });
  assert.deepEqual(await lab.collect(), { removed: [], freedBytes: 0, blockedBy: [] });
});
