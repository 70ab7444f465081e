import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MachineFacts } from '../host/machine.ts';
import { type BenchRun, writeRun } from './latest.ts';

const MACHINE = { cpu: 'one', cores: 2 } as MachineFacts;

function run(at: number, rows: Readonly<Record<string, number>>, more: Partial<BenchRun> = {}): BenchRun {
  const measured = Object.entries(rows).map(([name, value]) => ({ name, value, unit: 'x', goal: null, ok: true }));
  return {
    ...{ measuredAt: `2026-01-0${at}T00:00:00Z`, load: { before: at, after: at }, machine: MACHINE, complete: true },
    ...{ rows: measured, ...more },
  };
}

test('a complete run is written whole, one of some measurements in the place of their rows, each with its own run', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-bench-'));
  const path = join(folder, 'latest.json');
  const written = async () => {
    const { rows } = JSON.parse(await readFile(path, 'utf8'));
    return rows.map((row: Record<string, unknown>) => [row.name, row.value, String(row.measuredAt).slice(8, 10)]);
  };
  try {
    assert.equal(await writeRun(path, run(1, { 'a/x': 1 }, { complete: false })), false);
    assert.equal(await writeRun(path, run(1, { 'a/x': 1, 'a/y': 2, 'ab/x': 3, 'c/x': 4 })), true);
    assert.equal(await writeRun(path, run(2, { 'a/y': 5, 'a/z': 6, 'd/x': 7 }, { complete: false })), true);
    const expected = [
      ['a/y', 5, '02'],
      ['a/z', 6, '02'],
      ['ab/x', 3, '01'],
      ['c/x', 4, '01'],
      ['d/x', 7, '02'],
    ];
    assert.deepEqual(await written(), expected);
    const other = { complete: false, machine: { ...MACHINE, cores: 4 } };
    assert.equal(await writeRun(path, run(3, { 'a/y': 9 }, other)), false);
    assert.deepEqual(await written(), expected);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
