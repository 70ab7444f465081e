import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PAGE_SIZE } from '../../contract/micro-vm.ts';
import { privatePages } from './private-pages.ts';
import { giveSplit } from './read-memory.ts';

/** Entries of a page map, see the kernel's admin-guide/mm/pagemap: nothing, of a file, private, in swap. */
const KINDS = [0n, (1n << 63n) | (1n << 61n) | 5n, (1n << 63n) | (1n << 56n) | 7n, 1n << 62n] as const;
const [NONE, OF_FILE, PRIVATE, SWAPPED] = [0, 1, 2, 3] as const;

test('runs of private pages are told whole, in ascending order, wherever the page map is read in pieces', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'pagemap-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'pagemap');
  const [before, pages] = [3, 20_000];
  const kinds = new Uint8Array(before + pages);
  // Runs and gaps of all lengths; one run over both ends of a piece, and one at the end.
  for (let page = before, length = 1; page < kinds.length; page += length * 2, length = (length * 3) % 61)
    kinds
      .fill(length % 2 === 0 ? PRIVATE : SWAPPED, page, page + length)
      .fill(OF_FILE, page + length, page + length + 1);
  kinds.fill(PRIVATE, before + 8_000, before + 17_000);
  kinds.fill(NONE, before + 19_000, before + 19_500).fill(SWAPPED, before + 19_990);
  await writeFile(
    path,
    BigUint64Array.from(kinds, (kind) => KINDS[kind] as bigint),
  );
  const pagemap = openSync(path, 'r');
  t.after(() => closeSync(pagemap));
  const runs = [...privatePages(pagemap, before * PAGE_SIZE, (before + pages) * PAGE_SIZE)].flat();
  const found = new Uint8Array(pages);
  let end = -1;
  for (const run of runs) {
    assert.ok(run.first > end && run.end > run.first, 'apart, or they would be one');
    found.fill(1, run.first, run.end);
    end = run.end;
  }
  assert.deepEqual(
    found,
    kinds.subarray(before).map((kind) => (kind >= PRIVATE ? 1 : 0)),
  );
  assert.throws(
    () => [...privatePages(pagemap, 0, (before + pages + 1) * PAGE_SIZE)],
    /the page map ends at page 20003/,
  );
});

test('pages of zeros are told apart, also to a sink that is waited for', async () => {
  const bytes = Buffer.alloc(6 * PAGE_SIZE);
  // The first word of the second page is zero, the page is not.
  for (const at of [PAGE_SIZE + 9, 2 * PAGE_SIZE, 4 * PAGE_SIZE]) bytes[at] = 1;
  const told: string[] = [];
  const tell = (what: string, offset: number, length: number) =>
    void told.push(`${what} ${offset / PAGE_SIZE}+${length / PAGE_SIZE}`);
  const expected = ['zero 10+1', 'data 11+2', 'zero 13+1', 'data 14+1', 'zero 15+1'];
  assert.equal(
    giveSplit(bytes, 0, bytes.length, 10 * PAGE_SIZE, {
      data: (offset, part) => tell('data', offset, part.length),
      zero: (offset, length) => tell('zero', offset, length),
    }),
    undefined,
  );
  assert.deepEqual(told.splice(0), expected);
  await giveSplit(bytes, 0, bytes.length, 10 * PAGE_SIZE, {
    async data(offset, part) {
      await null;
      tell('data', offset, part.length);
    },
    zero: (offset, length) => tell('zero', offset, length),
  });
  assert.deepEqual(told, expected);
});
