import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { Lab } from './repository/testing/lab.ts';
import { sweepSnapshots } from './sweep.ts';

test('what nobody needs goes, with disks that have no manifest; what is needed stays', async () => {
  await using lab = await Lab.open();
  const kinds = {
    p1: 'pause',
    p2: 'pause',
    f1: 'fork',
    m1: 'template',
    m2: 'template',
    s1: 'snapshot',
    s2: 'snapshot',
  } as const;
  for (const [id, kind] of Object.entries(kinds)) {
    await using draft = await lab.repository.begin({ id, memoryBase: lab.zeros, memoryMb: 10 });
    await lab.capture(draft, []);
    await draft.commit(lab.facts({ kind }));
  }
  const disks = new Set(['p1', 'p1.1', 'p2', 'p2.1', 'p2.14', 's1', 's2', 'stray', 'd1', 'd1.1']);
  const volumes = {
    listSnapshots: async () => [...disks],
    removeSnapshot: async (id: string) => void disks.delete(id),
  };
  const needed = new Set(['p1', 'm1', 's1', 'd1']);
  await sweepSnapshots({ repository: lab.repository, volumes, needed, memoryBases: [], log: silentLogger });
  assert.deepEqual((await lab.repository.list()).map(({ id }) => id).sort(), ['m1', 'p1', 's1']);
  assert.deepEqual([...disks].sort(), ['d1', 'd1.1', 'p1', 'p1.1', 's1']);
});
