import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { commitLayers } from './commit/commit.ts';
import { EXCHANGE_FORM, type LayerForm } from './commit/layer-file.ts';
import { fileLayer, LayerPool } from './stack/pool.ts';
import { Disk } from './testing/disk.ts';

/** Two leaves of a sector map and a bit, so that stretches cross their borders. */
const SECTORS = 2 * 8192 + 40;
const SIZE = SECTORS * 512;
const ZEROS = Buffer.alloc(SIZE);
/** Offsets near each other and near borders, so that writes meet. */
const anySector = fc.oneof(
  fc.nat(40),
  fc.integer({ min: 8192 - 20, max: 8192 + 20 }),
  fc.integer({ min: 2 * 8192 - 20, max: SECTORS - 1 }),
  fc.nat(SECTORS - 1),
);
const anyLength = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(8, 16, 8192, 9000, 17_000));

type Step =
  | { readonly do: 'write' | 'zero'; readonly sector: number; readonly length: number }
  | { readonly do: 'many'; readonly parts: readonly { readonly sector: number; readonly length: number }[] }
  | { readonly do: 'snapshot' | 'reopen' | 'flush' | 'settle' };

const anyRange = fc.record({ sector: anySector, length: anyLength });
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: anyRange.map((range) => ({ do: 'write' as const, ...range })) },
  { weight: 3, arbitrary: anyRange.map((range) => ({ do: 'zero' as const, ...range })) },
  { weight: 2, arbitrary: fc.array(anyRange, { maxLength: 5 }).map((parts) => ({ do: 'many' as const, parts })) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Step>({ do: 'snapshot' }, { do: 'reopen' }, { do: 'flush' }, { do: 'settle' }),
  },
);

const soak = process.env.AENV_SOAK === '1';
const RUNS = soak ? 300 : 20;

test('a chain of layers reads like a flat disk, whatever is written, zeroed, frozen and opened again', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 40 }), async (steps) => {
      const folder = await mkdtemp(join(tmpdir(), 'block-model-'));
      await mkdir(join(folder, 'run'));
      const disk = await Disk.create({ folder, size: SIZE });
      try {
        const model = Buffer.alloc(SIZE);
        let mark = 0;
        const bytesOf = ({ sector, length }: { sector: number; length: number }) => {
          const count = Math.min(length, SECTORS - sector) * 512;
          const data = Buffer.alloc(count, ++mark % 251);
          for (let at = 0; at < count; at += 512) data.writeUInt32LE(mark * 65_536 + at / 512, at);
          data.copy(model, sector * 512);
          return { data, offset: sector * 512 };
        };
        for (const step of steps) {
          switch (step.do) {
            case 'write': {
              const { data, offset } = bytesOf(step);
              disk.upper.write(data, offset);
              break;
            }
            case 'many':
              disk.upper.writeMany(step.parts.map(bytesOf));
              break;
            case 'zero': {
              const length = Math.min(step.length, SECTORS - step.sector) * 512;
              disk.upper.zero(step.sector * 512, length);
              model.fill(0, step.sector * 512, step.sector * 512 + length);
              break;
            }
            case 'snapshot':
              await disk.snapshot();
              break;
            case 'reopen':
              await disk.reopen();
              break;
            case 'settle':
              await disk.settle();
              break;
            case 'flush':
              await disk.upper.flush('strict');
              break;
          }
          const at = 'sector' in step ? Math.max(0, step.sector - 9) * 512 : 0;
          const length = Math.min(SIZE - at, 20_480);
          assert.ok((await disk.read(at, length)).equals(model.subarray(at, at + length)), step.do);
        }
        assert.ok((await disk.read(0, SIZE)).equals(model));
        await disk.snapshot();
        await disk.settle();
        // The indexes of frozen layers are merged in the background.
        for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
        assert.ok((await disk.read(0, SIZE)).equals(model), 'after the indexes are merged');
        await checkRanges(disk, model);
        await checkMerged(folder, disk.sealed, model);
      } finally {
        await disk.close();
        await rm(folder, { recursive: true });
      }
    }),
    { numRuns: RUNS, ...(soak ? {} : { seed: 4711 }) },
  );
});

/** What is not in a data range reads as zeros. */
async function checkRanges(disk: Disk, model: Buffer): Promise<void> {
  let end = 0;
  for (const range of disk.stack.dataRanges(0, SIZE)) {
    assert.ok(range.offset >= end && range.length > 0);
    assert.ok(
      model.subarray(end, range.offset).equals(ZEROS.subarray(end, range.offset)),
      'data outside of the data ranges',
    );
    end = range.offset + range.length;
  }
  assert.ok(model.subarray(end).equals(ZEROS.subarray(end)), 'data outside of the data ranges');
}

/** The chain as one layer, and its upper part as one layer on the rest, read the same. */
async function checkMerged(folder: string, paths: readonly string[], model: Buffer): Promise<void> {
  const pool = new LayerPool();
  const middle = Math.floor(paths.length / 2);
  const forms: [readonly string[], LayerForm][] = [
    [[], {}],
    [paths.slice(0, middle), EXCHANGE_FORM],
  ];
  for (const [below, form] of forms) {
    const path = join(folder, `merged-${below.length}`);
    await commitLayers(pool, {
      layers: paths.slice(below.length).map(fileLayer),
      isBottom: below.length === 0,
      path,
      form,
      uuid: '99999999-0000-4000-8000-000000000000',
    });
    const stack = await pool.openStack([...below, path].map(fileLayer));
    const bytes = Buffer.alloc(SIZE, 0xaa);
    await stack.read(bytes, 0);
    assert.ok(bytes.equals(model), `merged over ${below.length} layers`);
    assert.equal(stack.virtualSize, SIZE);
    await stack.close();
    await rm(path);
  }
}
