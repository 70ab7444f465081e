import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { LayerStack } from '../layers/contract.ts';
import type { RandomFile } from '../layers/files/contract.ts';
import { hostFiles } from '../layers/files/host.ts';
import { fileLayer } from '../layers/stack/pool.ts';
import { MAX_LAYERS } from '../lsmt/format.ts';
import { isCode } from '../testing/is-code.ts';
import { LayeredVolume } from './layered-volume.ts';
import { VolumeLab } from './testing/lab.ts';

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;

async function read(volume: LayeredVolume, offset: number, length: number): Promise<Buffer> {
  const target = Buffer.alloc(length, 0xee);
  await volume.read(target, offset);
  return target;
}

test('a swap leaves what was written readable and immutable, and takes no longer for a large layer', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const volume = await lab.volume([]);
  for (let at = 0; at < SIZE; at += MIB) volume.write(Buffer.alloc(MIB, 7), at);
  const next = await lab.layer();
  const begin = performance.now();
  const frozen = volume.swap(next);
  const ms = performance.now() - begin;
  volume.write(Buffer.alloc(4096, 9), 4096);
  assert.ok((await read(volume, 0, 4096)).equals(Buffer.alloc(4096, 7)));
  assert.ok((await read(volume, 4096, 4096)).equals(Buffer.alloc(4096, 9)));
  const { path } = await frozen.durable;
  await frozen.close();
  const fork = await lab.volume([path]);
  assert.ok((await read(fork, 4096, 4096)).equals(Buffer.alloc(4096, 7)));
  // Copying or syncing so much would take longer than this; a busy host only rarely does.
  assert.ok(ms < 100, `${ms} ms`);
  await Promise.all([volume.close(), fork.close()]);
});

test('trimming what is empty already adds nothing', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const volume = await lab.volume([]);
  for (let at = 0; at < 40; at++) volume.write(Buffer.alloc(4096, 1), at * 65_536);
  volume.discard(0, SIZE);
  assert.equal(volume.usage.live, 0);
  assert.deepEqual([...volume.dataRanges(0, SIZE)], []);
  assert.ok((await read(volume, 0, SIZE)).equals(Buffer.alloc(SIZE)));
  await volume.close();
});

test('data ranges go on over the stretches that are looked at in one go', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const volume = await lab.volume([]);
  const parts = [
    [0, 512],
    [15 * MIB, 2 * MIB],
    [48 * MIB - 512, 1024],
    [SIZE - 512, 512],
  ] as const;
  for (const [at, length] of parts) volume.write(Buffer.alloc(length, 1), at);
  const found = () => [...volume.dataRanges(0, SIZE)].map(({ offset, length }) => [offset, length]);
  assert.deepEqual(found(), parts);
  const frozen = await lab.swap(volume);
  assert.deepEqual(found(), parts);
  assert.deepEqual([...volume.dataRanges(16 * MIB - 512, 1024)], [{ offset: 16 * MIB - 512, length: 1024 }]);
  await frozen.durable;
  await volume.close();
});

test('a disk of as many layers as there may be is written on when a snapshot is refused', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const volume = await lab.volume([]);
  const frozen = (await lab.layer()).freeze();
  const { path } = await frozen.durable;
  await frozen.close();
  volume.replaceStack(await lab.pool.openStack(Array.from({ length: MAX_LAYERS }, () => fileLayer(path))));
  volume.write(Buffer.alloc(4096, 1), 0);
  const next = await lab.layer();
  assert.throws(() => volume.swap(next), isCode('internal'));
  volume.write(Buffer.alloc(4096, 2), 4096);
  assert.ok((await read(volume, 4096, 4096)).equals(Buffer.alloc(4096, 2)));
  await Promise.all([volume.close(), next.close()]);
});

test('a strict flush after a swap waits for the frozen layer too', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const volume = await lab.volume([], { durability: 'strict' });
  volume.write(Buffer.alloc(4096, 1), 0);
  let sealed = false;
  const frozen = await lab.swap(volume);
  void frozen.durable.then(() => {
    sealed = true;
  });
  await volume.flush();
  assert.equal(sealed, true);
  await volume.close();
});

/** Files of the host, of which some calls fail. */
function failing(wrap: (path: string, file: RandomFile) => Partial<RandomFile>) {
  const wrapped = (path: string, file: RandomFile): RandomFile => ({
    size: () => file.size(),
    readSync: (target, position) => file.readSync(target, position),
    writeSync: (parts, position) => file.writeSync(parts, position),
    write: (data, position) => file.write(data, position),
    truncateSync: (size) => file.truncateSync(size),
    sync: () => file.sync(),
    close: () => file.close(),
    ...wrap(path, file),
  });
  return {
    ...hostFiles,
    create: async (path: string) => wrapped(path, await hostFiles.create(path)),
    open: async (path: string) => {
      const file = await hostFiles.open(path);
      return file && wrapped(path, file);
    },
  };
}

test('what could not be sealed fails every strict flush until it is, and a flush tries again', async () => {
  let full = false;
  const files = failing((path, file) => ({
    async write(data, position) {
      if (full && path.endsWith('writable_data')) throw new AenvError('no_space', 'no space');
      await file.write(data, position);
    },
  }));
  await using lab = await VolumeLab.open(SIZE, files);
  const volume = await lab.volume([], { durability: 'strict' });
  const lower = volume.upperUuid;
  volume.write(Buffer.alloc(4096, 1), 0);
  const [second, third] = [await lab.layer(), await lab.layer()];
  full = true;
  const frozen = volume.swap(second);
  await assert.rejects(frozen.durable, isCode('no_space'));
  await frozen.close();
  await assert.rejects(volume.flush(), isCode('no_space'));
  volume.write(Buffer.alloc(4096, 2), 4096);
  await assert.rejects(volume.flush(), isCode('no_space'), 'a later write has a flush that cannot be answered either');
  await volume.swap(third).close();
  await assert.rejects(volume.sealed(second.uuid), isCode('no_space'), 'nor has a layer that stands on it');
  const whole = Buffer.concat([Buffer.alloc(4096, 1), Buffer.alloc(4096, 2)]);
  assert.ok((await read(volume, 0, 8192)).equals(whole), 'all of it is read meanwhile');
  full = false;
  await volume.flush();
  assert.equal(volume.unsealed(lower), undefined);
  const sealed = [lower, second.uuid].map((uuid) => `${lab.folder}/${uuid}/overlaybd.sealed`);
  const fork = await lab.volume(sealed);
  assert.ok((await read(fork, 0, 8192)).equals(whole));
  await Promise.all([volume.close(), fork.close()]);
});

test('what could not be synced before a swap is never told to be durable', async () => {
  let broken = false;
  const files = failing((path, file) => ({
    async sync() {
      if (broken && path.endsWith('writable_data')) throw new AenvError('io_failed', 'EIO');
      await file.sync();
    },
  }));
  await using lab = await VolumeLab.open(SIZE, files);
  const volume = await lab.volume([], { durability: 'strict' });
  volume.write(Buffer.alloc(4096, 1), 0);
  const next = await lab.layer();
  broken = true;
  const frozen = volume.swap(next);
  await assert.rejects(frozen.durable, isCode('io_failed'));
  broken = false;
  await assert.rejects(volume.flush(), isCode('io_failed'));
  await assert.rejects(volume.flush(), isCode('io_failed'));
  assert.ok((await read(volume, 0, 4096)).equals(Buffer.alloc(4096, 1)));
  await Promise.all([volume.close(), frozen.close()]);
});

test('reads that wait for a lower layer keep its stack open through a swap and a replacement', async () => {
  await using lab = await VolumeLab.open(SIZE);
  const gate = Promise.withResolvers<void>();
  const closed: string[] = [];
  const slow = (name: string): LayerStack => ({
    virtualSize: SIZE,
    readSync: () => false,
    read: async (target) => {
      await gate.promise;
      assert.ok(!closed.includes(name), 'closed under a read');
      target.fill(3);
    },
    *dataRanges(offset, length) {
      yield { offset, length };
    },
    mustTakeLayer() {},
    over: () => slow(`${name}+`),
    close: async () => {
      closed.push(name);
    },
  });
  const upper = await lab.layer();
  const volume = new LayeredVolume({ id: 'v', size: SIZE, durability: 'relaxed', stack: slow('a'), upper });
  volume.write(Buffer.alloc(512, 1), 512);
  const reading = read(volume, 0, 2048);
  const frozen = await lab.swap(volume);
  const second = read(volume, 0, 512);
  volume.replaceStack(slow('b'));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(closed, []);
  const closing = volume.close();
  gate.resolve();
  const expected = Buffer.concat([Buffer.alloc(512, 3), Buffer.alloc(512, 1), Buffer.alloc(1024, 3)]);
  assert.ok((await reading).equals(expected));
  assert.ok((await second).equals(Buffer.alloc(512, 3)));
  await closing;
  assert.deepEqual(closed.sort(), ['a', 'a+', 'b']);
  // Its sealing may go on still, in a folder that is about to go.
  await frozen.durable;
});
