import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { ManualClock } from '../sandboxes/testing/manual-clock.ts';
import { collectSnapshots } from './collector.ts';
import type { GcReport, GcRoots } from './contract.ts';

const NOTHING: GcReport = { bases: 0, chunks: 0, files: 0, freedBytes: 0, blockedBy: [] };

test('what is collected spares the VMs that run at that moment; a failure does not end it, and close does', async () => {
  const lines: string[] = [];
  const write = (message: string) => void lines.push(message);
  const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
  const clock = new ManualClock();
  const running = ['/memory/a.mem'];
  const spared: string[][] = [];
  const answers = [
    () => ({ ...NOTHING, bases: 1, freedBytes: 4096 }),
    () => {
      throw new Error('the disk is gone');
    },
    () => ({ ...NOTHING, blockedBy: ['c1'] }),
    () => NOTHING,
  ];
  const gc = async ({ memoryBases }: GcRoots) => {
    spared.push([...memoryBases()]);
    return answers[spared.length - 1]?.() ?? NOTHING;
  };
  const collector = collectSnapshots({
    ...{ repository: { gc }, memoryBases: () => running, intervalMs: 60_000, clock, log },
  });
  await clock.advance(61_000);
  running.push('/memory/b.mem');
  await clock.advance(190_000);
  assert.deepEqual(spared.slice(0, 2), [['/memory/a.mem'], ['/memory/a.mem', '/memory/b.mem']]);
  assert.deepEqual(lines, [
    'what no snapshot needs was removed',
    'what no snapshot needs could not be removed',
    'snapshots cannot be read: nothing is removed',
  ]);
  assert.equal(spared.length, 4);
  await collector.close();
  await clock.advance(120_000);
  assert.equal(spared.length, 4);
});
