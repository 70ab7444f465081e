/**
 * A node that runs one operation of the lifecycle and ends itself, as `kill -9` does, when a point is reached. The block
 * daemon is another process, and goes on. What was acknowledged is told on stdout, a line each.
 *
 *     node fault-scenario.ts ROOT STORAGE LAYER POINT
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { findRunning } from '@aenv/block/client/launch.ts';
import { createNbdStore } from '@aenv/block/client/nbd-store.ts';
import { LIFECYCLE_POINTS } from '../faults.ts';
import { FaultLab } from './fault-lab.ts';

const [root = '', storage = '', layer = '', wanted] = process.argv.slice(2);
const point = LIFECYCLE_POINTS.find((name) => name === wanted);
const running = await findRunning(join(storage, 'run', 'blockd'));
if (point === undefined || running === undefined) throw new Error('usage: fault-scenario.ts ROOT STORAGE LAYER POINT');
const { connection } = running;
const lab = await FaultLab.open({
  ...{ root, layer },
  volumes: createNbdStore({
    root: join(storage, 'disks'),
    daemon: { call: (operation, args) => connection.call(operation, args) },
    socketsDir: join(storage, 'run', 'nbd'),
  }),
  faults: {
    hit(reached) {
      if (reached === point) process.kill(process.pid, 'SIGKILL');
    },
  },
});
await lab.run(point, (what) => writeSync(1, `${what}\n`));
