/**
 * The product's daemon, which stops at the points of the lifecycle that are armed, tells that it is there, and goes on when
 * they are not armed any more: a file each, in the folders `armed` and `reached` of AENV_TEST_FAULTS. See fault-points.ts.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runNode } from '@aenv/node/daemon/run.ts';

const folder = process.env.AENV_TEST_FAULTS ?? '';

await runNode({
  faults: {
    async hit(point) {
      const armed = join(folder, 'armed', point);
      if (!existsSync(armed)) return;
      writeFileSync(join(folder, 'reached', point), '');
      while (existsSync(armed)) await delay(5);
    },
  },
});
