import assert from 'node:assert/strict';
import { test } from 'node:test';
import { damaged, fuzz, randomOf } from '@aenv/block/testing/fuzz.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { TestImage } from '../testing/ext4.ts';
import { Ext4Reader } from '../testing/ext4-reader.ts';
import { pieces, tar } from '../testing/tar.ts';
import { TORTURE } from '../testing/torture.ts';
import { applyLayer } from './apply/layer.ts';
import { writeChanges } from './write-changes.ts';

/** Times that archives are damaged; in soak it is a minute. */
const TIMES = 160;
/** Every so many damaged archives, what was made of one is checked by e2fsck(8). */
const CHECKED = 40;
/** Bytes of memory that no archive may make the writer use, beyond what it had. */
const MEMORY = 512 * 2 ** 20;
const BLOCK = 512;
const SIZE = 32 * 2 ** 20;

/** Honest layers that are small: what is damaged is mostly a header then. */
const SAMPLES = Object.values(TORTURE)
  .flatMap(({ layers }) => layers)
  .map((members) => tar(...members))
  .filter((archive) => archive.length < 200_000 && archive.length > 2048)
  .concat(sparseSamples());

test('archives damaged at random become a clean file system or are refused by name, in bounded memory', async () => {
  let taken = 0;
  let refused = 0;
  const attempt = async (seed: number) => {
    const random = randomOf(seed);
    const image = new TestImage(SIZE);
    try {
      // Two in a row, so that the second one finds something.
      for (let layer = 0; layer < 2; layer++) {
        const sample = SAMPLES[(seed + layer) % SAMPLES.length] ?? Buffer.alloc(0);
        const archive = damaged(sample, random);
        // Else nearly all would be refused for their checksums.
        if (random() < 0.9) mendChecksums(archive);
        await applyLayer(image.tree, pieces(archive, 10_000), image.disk);
      }
      await writeChanges(image.tree, image.disk);
      assert.ok(new Ext4Reader(image.disk).tree().size > 1);
      if (taken++ % CHECKED === 0) await image.check();
    } catch (error) {
      if (!(error instanceof AenvError && error.code === 'image_invalid')) throw error;
      refused++;
    }
  };
  await fuzz({ times: TIMES, memory: MEMORY, attempt });
  assert.ok(taken > TIMES / 20 && refused > TIMES / 20, `${taken} taken, ${refused} refused`);
});

function sparseSamples(): Buffer[] {
  const sparse = (records: Record<string, string>, data: string) =>
    tar({
      name: 'd/x',
      data,
      pax: Object.fromEntries(Object.entries(records).map(([k, v]) => [`GNU.sparse.${k}`, v])),
    });
  const map = '2\n4096\n5\n9000\n5\n'.padEnd(512, '\0');
  return [
    sparse({ size: '100000', map: '0,5,50000,5' }, 'firstlast.'),
    sparse({ major: '1', minor: '0', name: 'real name', realsize: '20000' }, `${map}firstlast.`),
  ];
}

function mendChecksums(archive: Buffer): void {
  for (let at = 0; at + BLOCK <= archive.length; at += BLOCK) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.toString('latin1', 257, 262) !== 'ustar') continue;
    block.fill(' ', 148, 156);
    const sum = block.reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  }
}
