import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { LayeredVolume } from './layered-volume.ts';
import { VolumeLab } from './testing/lab.ts';

const SOAK = process.env.AENV_SOAK === '1';
const SECTOR = 512;
const SECTORS = 4096;
const SIZE = SECTORS * SECTOR;
const ZEROS = Buffer.alloc(SIZE);

/** A volume and what it should hold. */
interface Twin {
  volume: LayeredVolume;
  model: Buffer;
  /** paths of its sealed layers, bottom first; the newest may still be on its way to the disk */
  readonly lowers: Promise<string>[];
}

type Step =
  | { readonly kind: 'write'; readonly writes: readonly (readonly [number, number])[]; readonly seed: number }
  | { readonly kind: 'zero' | 'discard'; readonly at: number; readonly count: number }
  | { readonly kind: 'snapshot' | 'fork' | 'reopen' | 'flush' };

const range = fc
  .tuple(
    fc.integer({ min: 0, max: SECTORS - 1 }),
    fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2000 })),
  )
  .map(([at, count]) => [at, Math.min(count, SECTORS - at)] as const);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      writes: fc.array(range, { minLength: 1, maxLength: 4 }),
      seed: fc.integer({ min: 1, max: 255 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom('zero' as const, 'discard' as const), range)
      .map(([kind, [at, count]]) => ({ kind, at, count })),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('snapshot' as const, 'fork' as const, 'reopen' as const, 'flush' as const)
      .map((kind) => ({ kind })),
  },
);

async function perform(lab: VolumeLab, twins: Twin[], twin: Twin, step: Step): Promise<void> {
  switch (step.kind) {
    case 'write': {
      const writes = step.writes.map(([at, count], index) => ({
        offset: at * SECTOR,
        data: Buffer.alloc(count * SECTOR, Buffer.from([step.seed, index + 1, at & 255])),
      }));
      twin.volume.writeMany(writes);
      for (const { offset, data } of writes) data.copy(twin.model, offset);
      break;
    }
    case 'zero':
    case 'discard':
      twin.volume[step.kind](step.at * SECTOR, step.count * SECTOR);
      twin.model.fill(0, step.at * SECTOR, (step.at + step.count) * SECTOR);
      break;
    case 'flush':
      await twin.volume.flush('strict');
      break;
    case 'snapshot':
      twin.lowers.push((await lab.swap(twin.volume)).durable.then(({ path }) => path));
      break;
    case 'fork': {
      if (twins.length > 3) break;
      twin.lowers.push((await lab.swap(twin.volume)).durable.then(({ path }) => path));
      const lowers = await Promise.all(twin.lowers);
      twins.push({
        volume: await lab.volume(lowers),
        model: Buffer.from(twin.model),
        lowers: [...twin.lowers],
      });
      break;
    }
    case 'reopen': {
      const lowers = await Promise.all(twin.lowers);
      const upper = twin.volume.upperUuid;
      await twin.volume.close();
      twin.volume = await lab.volume(lowers, { upper });
    }
  }
}

async function verify({ volume, model }: Twin): Promise<void> {
  const found = Buffer.alloc(SIZE, 0xee);
  await volume.read(found, 0);
  assert.ok(found.equals(model));
  for (let at = SECTOR; at < SIZE; at += 61 * SECTOR) {
    const part = Buffer.alloc(Math.min(7 * SECTOR, SIZE - at), 0xee);
    await volume.read(part, at);
    assert.ok(part.equals(model.subarray(at, at + part.length)), `at ${at}`);
  }
  // Whatever is no data range must be zeros, and ranges are in order.
  let end = 0;
  for (const { offset, length } of volume.dataRanges(0, SIZE)) {
    assert.ok(offset >= end && length > 0);
    assert.ok(model.subarray(end, offset).equals(ZEROS.subarray(end, offset)));
    end = offset + length;
  }
  assert.ok(model.subarray(end).equals(ZEROS.subarray(end)));
}

test('writes, zeroes, discards, snapshots, forks and reopening are the same as on flat disks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(), step), { minLength: 10, maxLength: 40 }), async (steps) => {
      await using lab = await VolumeLab.open(SIZE);
      const twins: Twin[] = [{ volume: await lab.volume([]), model: Buffer.alloc(SIZE), lowers: [] }];
      for (const [which, next] of steps) {
        const twin = twins[which % twins.length];
        assert.ok(twin);
        await perform(lab, twins, twin, next);
      }
      for (const twin of twins) {
        await verify(twin);
        await twin.volume.close();
        // Layers are sealed aside, in the folder that goes with the lab.
        await Promise.all(twin.lowers);
      }
    }),
    { seed: 4, numRuns: SOAK ? 400 : 12 },
  );
});
