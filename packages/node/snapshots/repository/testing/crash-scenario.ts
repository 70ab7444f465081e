/**
 * Makes, restores, removes and collects snapshots, and ends itself as `kill -9` does at a given point; or goes on, and has
 * copies of the folder made as it is at each point. What is done is told on stdout, a line each, when it was acknowledged.
 *
 *     node crash-scenario.ts FOLDER POINT
 *     node crash-scenario.ts FOLDER --copies FOLDER-OF-COPIES
 */
import { execFileSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultPoint } from '../faults.ts';
import { BASE_CHANGES, DELTA_CHANGES, Lab } from './lab.ts';

const [folder = '', point, copies = ''] = process.argv.slice(2);
const copied = new Set<FaultPoint>();
const done = (what: string) => writeSync(1, `${what}\n`);
const lab = await Lab.reopen(folder, {
  faults: {
    hit(reached: FaultPoint) {
      if (reached === point) process.kill(process.pid, 'SIGKILL');
      if (point !== '--copies' || copied.has(reached)) return;
      copied.add(reached);
      execFileSync('cp', ['-a', '--sparse=always', folder, join(copies, reached)]);
      done(`reached ${reached}`);
    },
  },
});

await lab.snapshot('delta', DELTA_CHANGES);
done('made delta');
await lab.snapshot('base', BASE_CHANGES, { asNewBase: true });
done('made base');
await lab.repository.mergeDelta('delta');
await lab.repository.gc({ memoryBases: () => [], dropUnusedFiles: true });
await lab.memoryOf('base');
for (const id of ['delta', 'old']) {
  await lab.repository.remove(id);
  done(`removed ${id}`);
}
await lab.repository.gc({ memoryBases: () => [] });
done('end');
