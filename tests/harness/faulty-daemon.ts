/**
 * The product's daemon, which stops at the point of the lifecycle that the file `armed` of the folder AENV_TEST_FAULTS names,
 * tells that it is there by the file `reached`, and goes on when `armed` is gone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runNode } from '@aenv/node/daemon/run.ts';

const folder = process.env.AENV_TEST_FAULTS ?? '';

function armed(): string | undefined {
  try {
    return readFileSync(join(folder, 'armed'), 'utf8');
  } catch {
    return undefined;
  }
}

await runNode({
  faults: {
    async hit(point) {
      if (armed() !== point) return;
      writeFileSync(join(folder, 'reached'), point);
      while (armed() === point) await delay(5);
    },
  },
});
