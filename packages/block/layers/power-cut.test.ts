import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memorySource } from '../blob/memory-source.ts';
import { type Random, randomOf } from '../testing/fuzz.ts';
import { Disk, type DiskPlace } from './testing/disk.ts';
import { PowerCutFiles } from './testing/power-cut-files.ts';

const FOLDER = '/disk';
const SECTORS = 64;
const SIZE = SECTORS * 512;
const soak = process.env.AENV_SOAK === '1';
const DISKS = soak ? 3000 : 60;
const LIVES = 6;

/** What each sector may read as after a crash: the mark of the write that was durable last, or of any after it. */
class Expected {
  readonly #history = Array.from({ length: SECTORS }, () => [0]);
  readonly #floor = new Array<number>(SECTORS).fill(0);

  wrote(sector: number, count: number, mark: number): void {
    for (const history of this.#history.slice(sector, sector + count)) history.push(mark);
  }

  /** @returns what makes everything up to now something that must not be lost */
  moment(): () => void {
    const lengths = this.#history.map((history) => history.length);
    return () => {
      for (const [i, length] of lengths.entries()) this.#floor[i] = Math.max(this.#floor[i] ?? 0, length - 1);
    };
  }

  /** What is there after a power cut is the truth from then on; a kill makes nothing more durable than it was. */
  check(marks: readonly number[], how: 'cut' | 'kill'): void {
    for (const [i, history] of this.#history.entries()) {
      const mark = marks[i] ?? -1;
      const allowed = how === 'kill' ? history.slice(-1) : history.slice(this.#floor[i]);
      assert.ok(allowed.includes(mark), `after a ${how} sector ${i} reads ${mark}, not one of ${allowed.join(' ')}`);
      if (how === 'kill') continue;
      history.splice(0, history.length, mark);
      this.#floor[i] = 0;
    }
  }
}

/** Where the disk of a test is when its files are these. */
function placeOn(files: PowerCutFiles): DiskPlace {
  return {
    folder: FOLDER,
    size: SIZE,
    files,
    bootId: 'this boot',
    openSealed: (path: string) => ({ key: path, open: async () => memorySource(files.bytesOf(path)) }),
  };
}

async function marksOf(disk: Disk): Promise<number[]> {
  const bytes = await disk.read(0, SIZE);
  return Array.from({ length: SECTORS }, (_, i) => {
    const [first, last] = [bytes.readUInt32LE(i * 512), bytes.readUInt32LE(i * 512 + 508)];
    assert.equal(first, last, 'a sector of two writes');
    return first;
  });
}

/** Writes, zeroes, flushes and snapshots until something fails, as it does when the fuse of the files is burnt. */
async function live(disk: Disk, expected: Expected, random: Random, nextMark: () => number): Promise<void> {
  const flush = async () => {
    const durable = expected.moment();
    await disk.flush();
    durable();
  };
  for (;;) {
    const sector = Math.floor(random() * SECTORS);
    const count = Math.min(SECTORS - sector, 1 + Math.floor(random() * 12));
    const kind = random();
    if (kind < 0.55) {
      const mark = nextMark();
      const data = Buffer.alloc(count * 512);
      for (let at = 0; at < data.length; at += 512) {
        data.writeUInt32LE(mark, at);
        data.writeUInt32LE(mark, at + 508);
      }
      disk.upper.write(data, sector * 512);
      expected.wrote(sector, count, mark);
    } else if (kind < 0.7) {
      disk.upper.zero(sector * 512, count * 512);
      expected.wrote(sector, count, 0);
    } else if (kind < 0.8) await flush();
    else if (kind < 0.9) flush().catch(() => {});
    else if (kind < 0.95) {
      const durable = expected.moment();
      (await disk.snapshot()).durable.then(durable, () => {});
    } else await new Promise(setImmediate);
  }
}

test('neither a power cut nor a kill loses what was durable, and sectors are of one write', async () => {
  let [cuts, kills, lost] = [0, 0, 0];
  for (let seed = 1; seed <= DISKS; seed++) {
    const random = randomOf(seed);
    const expected = new Expected();
    let files = new PowerCutFiles(`${FOLDER}/run/`);
    let disk = await Disk.create(placeOn(files));
    let mark = 0;
    for (let life = 0; life < LIVES; life++) {
      files.fuse = Math.floor(random() ** 2 * 300);
      await assert.rejects(
        live(disk, expected, random, () => ++mark),
        /the power is off|could not be synced/,
      );
      const how = random() < 0.7 ? 'cut' : 'kill';
      const before = mark;
      files = how === 'cut' ? files.cut(random) : files.kill();
      if (how === 'cut') cuts++;
      else kills++;
      try {
        disk = await Disk.recover(placeOn(files), disk.count);
        const marks = await marksOf(disk);
        if (how === 'cut' && !marks.includes(before)) lost++;
        expected.check(marks, how);
      } catch (error) {
        throw new Error(`disk ${seed}, life ${life}`, { cause: error });
      }
    }
  }
  assert.ok(cuts > DISKS && kills > DISKS / 2, `${cuts} cuts, ${kills} kills`);
  assert.ok(lost > DISKS / 4, 'cuts that lose nothing test nothing');
});

test('what was seen after a kill and flushed then survives a power cut, at whatever moment of a snapshot it was killed', async () => {
  let snapshots = 0;
  for (let fuse = 1; snapshots < 3; fuse++) {
    const files = new PowerCutFiles(`${FOLDER}/run/`);
    const disk = await Disk.create(placeOn(files));
    const data = Buffer.alloc(512, 'before the snapshot');
    disk.upper.write(data, 0);
    files.fuse = fuse;
    await disk
      .snapshot()
      .then(
        (frozen) => frozen.durable.then(() => snapshots++),
        () => {},
      )
      .catch(() => {});
    const killed = files.kill();
    const again = await Disk.recover(placeOn(killed), disk.count);
    assert.ok((await again.read(0, 512)).equals(data), `killed after ${fuse} calls`);
    again.upper.write(data, 512);
    await again.flush();
    // Nothing that was not synced is kept.
    const last = await Disk.recover(placeOn(killed.cut(() => 0)), again.count);
    assert.ok((await last.read(0, 1024)).equals(Buffer.concat([data, data])), `killed after ${fuse} calls, then cut`);
  }
});
