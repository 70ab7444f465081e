import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeSegment } from '../../lsmt/segment.ts';
import { isCode } from '../../testing/is-code.ts';
import type { WritableLayer } from '../contract.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';
import { PowerCutFiles } from '../testing/power-cut-files.ts';
import { createWritableLayer, reopenWritableLayer } from './open.ts';

const UUID = '11111111-2222-4333-8444-555555555555';
const SIZE = 256 * 2 ** 20;

function placeOn(files: LayerFiles, bootId = 'boot 1') {
  return { folder: '/layer', pendingPath: '/run/pending', files, bootId };
}

function create(files: LayerFiles): Promise<WritableLayer> {
  return createWritableLayer({ ...placeOn(files), uuid: UUID, virtualSize: SIZE });
}

function read(layer: WritableLayer, offset: number, length: number): Buffer {
  const target = Buffer.alloc(length, '.');
  layer.lookup(offset, length, (start, count, place, zeroed) => {
    const part = target.subarray(start - offset, start - offset + count);
    if (zeroed) part.fill('0');
    else layer.readDataSync(part, place);
  });
  return target;
}

/** Files of which some calls fail or wait. */
function interfering(files: PowerCutFiles, wrap: (path: string, file: RandomFile) => RandomFile): LayerFiles {
  return {
    makeFolder: () => files.makeFolder(),
    create: async (path) => wrap(path, await files.create(path)),
    open: async (path) => {
      const file = await files.open(path);
      return file && wrap(path, file);
    },
    rename: (from, to) => files.rename(from, to),
    renameSync: (from, to) => files.renameSync(from, to),
    remove: (path) => files.remove(path),
    syncFolder: (path) => files.syncFolder(path),
  };
}

test('writes outside of the disk, or not in whole sectors, are faults of the caller', async () => {
  const layer = await create(new PowerCutFiles('/run'));
  assert.throws(() => layer.write(Buffer.alloc(511), 0), RangeError);
  assert.throws(() => layer.write(Buffer.alloc(512), 100), RangeError);
  assert.throws(() => layer.write(Buffer.alloc(1024), SIZE - 512), RangeError);
  assert.throws(() => layer.zero(-512, 512), RangeError);
  layer.write(Buffer.alloc(0), 0);
  layer.zero(0, 0);
  assert.deepEqual(layer.usage, { total: 4096, live: 0 });
});

test('concurrent flushes share their syncs, and a later write gets a later sync', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(files);
  layer.write(Buffer.alloc(512, 'a'), 0);
  files.syncs = 0;
  await Promise.all([layer.flush('strict'), layer.flush('strict'), layer.flush('strict')]);
  assert.equal(files.syncs, 2);
  await layer.flush('strict');
  assert.equal(files.syncs, 2, 'nothing is new');
  const first = layer.flush('strict');
  layer.write(Buffer.alloc(512, 'b'), 512);
  const running = layer.flush('strict');
  layer.write(Buffer.alloc(512, 'c'), 1024);
  await Promise.all([first, running, layer.flush('strict'), layer.flush('strict')]);
  assert.equal(files.syncs, 6, 'one round for b, one for c');
});

test('a relaxed flush syncs nothing', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(files);
  files.syncs = 0;
  layer.write(Buffer.alloc(512, 'a'), 0);
  await layer.flush('relaxed');
  assert.equal(files.syncs, 0);
});

test('64 MiB of unsynced data are synced without being asked', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(interfering(files, (_path, file) => ({ ...file, readSync() {}, writeSync() {} })));
  files.syncs = 0;
  const data = Buffer.alloc(16 * 2 ** 20);
  for (let i = 0; i < 3; i++) layer.write(data, i * data.length);
  assert.equal(files.syncs, 0);
  layer.write(data, 0);
  assert.equal(files.syncs, 1);
});

test('a full disk refuses the write, and the layer goes on when there is space again', async () => {
  let full = false;
  const files = new PowerCutFiles('/run');
  const layer = await create(
    interfering(files, (path, file) => ({
      ...file,
      writeSync(parts, position) {
        if (full && path.endsWith('writable_data')) {
          file.writeSync([Buffer.alloc(512, 'torn')], position);
          throw new AenvError('no_space', 'no space');
        }
        file.writeSync(parts, position);
      },
    })),
  );
  layer.write(Buffer.alloc(1024, 'a'), 0);
  full = true;
  assert.throws(() => layer.write(Buffer.alloc(1024, 'b'), 0), isCode('no_space'));
  assert.equal(read(layer, 0, 1024).toString(), 'a'.repeat(1024));
  full = false;
  layer.write(Buffer.alloc(512, 'c'), 512);
  await layer.flush('strict');
  assert.equal(read(layer, 0, 1024).toString(), 'a'.repeat(512) + 'c'.repeat(512));
  await layer.close();
  const again = await reopenWritableLayer(placeOn(files));
  assert.equal(read(again, 0, 1024).toString(), 'a'.repeat(512) + 'c'.repeat(512));
});

test('a full file system in memory refuses the write too, and nothing of it is there later', async () => {
  let full = false;
  const files = new PowerCutFiles('/run');
  const layer = await create(
    interfering(files, (path, file) => ({
      ...file,
      writeSync(parts, position) {
        if (full && path === '/run/pending') throw new AenvError('no_space', 'no space');
        file.writeSync(parts, position);
      },
    })),
  );
  layer.write(Buffer.alloc(512, 'a'), 0);
  full = true;
  assert.throws(() => layer.write(Buffer.alloc(512, 'b'), 0), isCode('no_space'));
  assert.throws(() => layer.zero(0, 512), isCode('no_space'));
  full = false;
  layer.write(Buffer.alloc(512, 'c'), 512);
  const again = await reopenWritableLayer(placeOn(files.kill()));
  assert.equal(read(again, 0, 1024).toString(), 'a'.repeat(512) + 'c'.repeat(512));
});

test('of entries of which some were logged before memory was full, none is there later', async () => {
  let room = Number.POSITIVE_INFINITY;
  const files = new PowerCutFiles('/run');
  const layer = await create(
    interfering(files, (path, file) => ({
      ...file,
      writeSync(parts, position) {
        const [bytes] = parts;
        if (path !== '/run/pending' || bytes === undefined || bytes.length <= room) file.writeSync(parts, position);
        else {
          file.writeSync([bytes.subarray(0, room)], position);
          throw new AenvError('no_space', 'no space');
        }
      },
    })),
  );
  // What can be logged still is one entry and a little more, as at the end of a page.
  room = 40;
  const both = ['a', 'b', 'c'].map((text, index) => ({ data: Buffer.alloc(512, text), offset: index * 512 }));
  assert.throws(() => layer.writeMany(both), isCode('no_space'));
  layer.write(Buffer.alloc(1024, 'd'), 4096);
  const expected = read(layer, 0, 8192);
  assert.equal(expected.subarray(0, 2048).toString(), '.'.repeat(2048));
  const again = await reopenWritableLayer(placeOn(files.kill()));
  assert.ok(read(again, 0, 8192).equals(expected));
});

test('zeros, which bring no data, are synced without being asked too', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await createWritableLayer({ ...placeOn(files), uuid: UUID, virtualSize: 2 ** 40 });
  files.syncs = 0;
  layer.zero(0, 2 ** 39);
  assert.equal(files.syncs, 0);
  layer.zero(0, 2 ** 39);
  assert.equal(files.syncs, 1);
  await layer.flush('strict');
});

test('what could not be opened again is refused: a write too many, and a layer of too many pieces', async () => {
  const files = new PowerCutFiles('/run');
  const limits = { logEntries: 4, segments: 2 };
  const layer = await createWritableLayer({ ...placeOn(files), uuid: UUID, virtualSize: SIZE, limits });
  for (const at of [0, 1024, 2048]) layer.write(Buffer.alloc(512, 'a'), at);
  await layer.flush('strict');
  layer.write(Buffer.alloc(512, 'a'), 512);
  assert.throws(() => layer.write(Buffer.alloc(512, 'b'), 0), isCode('no_space'));
  assert.throws(() => layer.zero(0, 512), isCode('no_space'));
  assert.equal(read(layer, 0, 512).toString(), 'a'.repeat(512));
  const frozen = layer.freeze();
  await assert.rejects(frozen.durable, isCode('layer_too_scattered'));
  await frozen.close();
  const again = await reopenWritableLayer(placeOn(files));
  assert.equal(read(again, 0, 1536).toString(), 'a'.repeat(1536));
});

test('after a sync that failed nothing is promised any more', async () => {
  let broken = true;
  const layer = await create(
    interfering(new PowerCutFiles('/run'), (path, file) => ({
      ...file,
      async sync() {
        if (broken && file.size() > 4096 && path.endsWith('data')) throw new AenvError('io_failed', 'EIO');
        await file.sync();
      },
    })),
  );
  layer.write(Buffer.alloc(512, 'a'), 0);
  await assert.rejects(layer.flush('strict'), isCode('io_failed'));
  broken = false;
  await assert.rejects(layer.flush('strict'), isCode('io_failed'));
  await assert.rejects(layer.flush('relaxed'), isCode('io_failed'));
  assert.throws(() => layer.write(Buffer.alloc(512), 0), isCode('io_failed'));
  assert.equal(read(layer, 0, 512).toString(), 'a'.repeat(512), 'what is there can still be read');
  const frozen = layer.freeze();
  await assert.rejects(frozen.durable, isCode('io_failed'));
  await frozen.close();
});

test('a disk that is full when the index is written fails the flush; the next one makes up for it', async () => {
  let full = false;
  const files = new PowerCutFiles('/run');
  const layer = await create(
    interfering(files, (path, file) => ({
      ...file,
      async write(data, position) {
        if (full && path.endsWith('writable_index')) throw new AenvError('no_space', 'no space');
        await file.write(data, position);
      },
    })),
  );
  layer.write(Buffer.alloc(512, 'a'), 0);
  full = true;
  await assert.rejects(layer.flush('strict'), isCode('no_space'));
  await assert.rejects(layer.flush('strict'), isCode('no_space'), 'still nothing is durable');
  full = false;
  await layer.flush('strict');
  layer.write(Buffer.alloc(512, 'b'), 512);
  const again = await reopenWritableLayer(placeOn(files.cut(() => 0)));
  assert.equal(read(again, 0, 1024).toString(), 'a'.repeat(512) + '.'.repeat(512));
});

test('the log in memory is cut when it has grown, also while writes go on, and nothing of it is lost', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await createWritableLayer({ ...placeOn(files), uuid: UUID, virtualSize: 2 ** 40 });
  // A whole disk of 1 TiB is zeroed in 4 MiB of entries.
  for (let i = 0; i < 2; i++) layer.zero(0, 2 ** 40);
  assert.ok(files.bytesOf('/run/pending').length > 4 * 2 ** 20);
  const flushing = layer.flush('strict');
  let writes = 0;
  let done = false;
  const watching = flushing.then(() => {
    done = true;
  });
  while (!done) {
    layer.write(Buffer.alloc(512, `${++writes}`), (writes % 10) * 512);
    await new Promise(setImmediate);
  }
  await watching;
  assert.ok(writes > 1);
  assert.ok(files.bytesOf('/run/pending').length <= 128 + 16 * writes);
  layer.write(Buffer.alloc(512, 'last'), 0);
  const expected = read(layer, 0, 8192);
  const again = await reopenWritableLayer(placeOn(files.kill()));
  assert.ok(read(again, 0, 8192).equals(expected));
});

test('a uuid in upper case is the same layer when it is opened again', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await createWritableLayer({ ...placeOn(files), uuid: UUID.replace('8', 'A'), virtualSize: SIZE });
  layer.write(Buffer.alloc(512, 'a'), 0);
  const again = await reopenWritableLayer(placeOn(files.kill()));
  assert.equal(read(again, 0, 512).toString(), 'a'.repeat(512));
});

test('entries of another boot are not replayed', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(files);
  layer.write(Buffer.alloc(512, 'a'), 0);
  await layer.flush('strict');
  layer.write(Buffer.alloc(512, 'b'), 0);
  const survived = files.kill();
  const other = await reopenWritableLayer(placeOn(survived, 'boot 2'));
  assert.equal(read(other, 0, 512).toString(), 'a'.repeat(512));
});

test('an entry that points behind the data never comes to life, and a torn tail says nothing', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(files);
  layer.write(Buffer.alloc(512, 'a'), 0);
  await layer.flush('strict');
  await layer.close();
  // As a writer leaves it that syncs its files in any order: an entry before its data, zeros, and half an entry.
  const tail = Buffer.alloc(16 * 4 + 7);
  const view = new DataView(tail.buffer, tail.byteOffset);
  writeSegment(view, 0, 0, 1, 9, false);
  writeSegment(view, 16, 2, 1, 9, true);
  writeSegment(view, 32, SIZE / 512, 1, 8, false);
  const index = files.bytesOf('/layer/writable_index');
  files.put('/layer/writable_index', Buffer.concat([index, tail]));

  for (const text of ['b', 'c']) {
    const again = await reopenWritableLayer(placeOn(files));
    assert.equal(read(again, 0, 512).toString(), 'a'.repeat(512));
    assert.equal(read(again, 1024, 512).toString(), '0'.repeat(512));
    again.write(Buffer.alloc(512, text), 512);
    await again.flush('strict');
    assert.equal(read(again, 512, 512).toString(), text.repeat(512));
    await again.close();
  }
  assert.equal(files.bytesOf('/layer/writable_index').length % 16, 0);
});

test('files that do not belong together, or are of another kind, are refused', async () => {
  const files = new PowerCutFiles('/run');
  await (await create(files)).close();
  const other = new PowerCutFiles('/run');
  await (await createWritableLayer({ ...placeOn(other), uuid: UUID.replace('1', '2'), virtualSize: SIZE })).close();
  const data = Buffer.from(files.bytesOf('/layer/writable_data'));
  const index = Buffer.from(files.bytesOf('/layer/writable_index'));
  const foreign = Buffer.from(other.bytesOf('/layer/writable_index'));
  for (const [name, dataBytes, indexBytes] of [
    ['another index', data, foreign],
    ['swapped', index, data],
    ['short', data.subarray(0, 4095), index],
    ['empty', data, Buffer.alloc(0)],
  ] as const) {
    const mixed = new PowerCutFiles('/run');
    mixed.put('/layer/writable_data', dataBytes);
    mixed.put('/layer/writable_index', indexBytes);
    await assert.rejects(reopenWritableLayer(placeOn(mixed)), isCode('layer_corrupt'), name);
  }
  await assert.rejects(reopenWritableLayer(placeOn(new PowerCutFiles('/run'))), isCode('layer_corrupt'));
});

test('a frozen layer takes no writes and reads the same before, while and after it is sealed', async () => {
  const files = new PowerCutFiles('/run');
  const layer = await create(files);
  for (let i = 0; i < 40; i++) layer.write(Buffer.alloc(512, 97 + (i % 26)), ((i * 7) % 40) * 1024);
  layer.zero(4096, 8192);
  const content = read(layer, 0, 40 * 1024);
  const frozen = layer.freeze();
  assert.throws(() => layer.write(Buffer.alloc(512), 0), isCode('internal'));
  assert.throws(() => layer.freeze(), isCode('internal'));
  await assert.rejects(layer.flush('strict'), isCode('internal'));
  const readFrozen = () => {
    const target = Buffer.alloc(content.length, '.');
    frozen.lookup(0, target.length, (start, count, place, zeroed) => {
      if (zeroed) target.fill('0', start, start + count);
      else frozen.readDataSync(target.subarray(start, start + count), place);
    });
    return target;
  };
  assert.ok(readFrozen().equals(content));
  let sealed = false;
  const durable = frozen.durable.then((result) => {
    sealed = true;
    return result;
  });
  while (!sealed) {
    assert.ok(readFrozen().equals(content));
    await new Promise(setImmediate);
  }
  assert.ok(readFrozen().equals(content));
  assert.equal((await durable).sizeBytes, files.bytesOf('/layer/overlaybd.sealed').length);
  await frozen.close();
  await frozen.close();
  assert.throws(() => frozen.retain(), isCode('internal'));
});
