import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { LIFECYCLE_POINTS, type LifecyclePoint } from './faults.ts';
import { FaultLab } from './testing/fault-lab.ts';

/** The VM dies at every step of the lifecycle. That of the daemons: tests/faults. */

let storage: StorageHost;
let lab: FaultLab;
let armed: LifecyclePoint | undefined;

before(async () => {
  storage = await StorageHost.open();
  lab = await FaultLab.open({
    root: await mkdtemp(join(storage.root, 'node-')),
    volumes: storage.store,
    layer: (await storage.layer(2 ** 20, 4096)).path,
    faults: {
      async hit(reached) {
        if (reached !== armed) return;
        armed = undefined;
        await Promise.all([...lab.driver.host.vms.values()].map((vm) => vm.die('as planned')));
      },
    },
  });
});
after(async () => {
  await lab?.close();
  await storage?.[Symbol.asyncDispose]();
});

/** From here on a pause needs the VM no more. */
const WHOLE = /^pause.*\.(memory_captured|disk_taken|durable|row_paused|released)$/;
/** It is up again by itself, and nobody has been told. */
const RUNS_AGAIN = /^comeback\.(row_running|checkpoint_removed)$/;

for (const point of LIFECYCLE_POINTS) {
  test(`VMs die at ${point}: what is told of each sandbox is true, and nothing leaks`, async () => {
    armed = point;
    const acknowledged: string[] = [];
    let failed = false;
    try {
      await lab.run(point, (what) => acknowledged.push(what));
    } catch (error) {
      assert.ok(error instanceof AenvError, String(error));
      failed = true;
    }
    assert.equal(armed, undefined, 'the point was not passed');
    if (WHOLE.test(point)) assert.equal(failed, false, 'all of it was captured');
    await check(acknowledged, point);
  });
}

/** Whoever is said to run has a VM that runs, whoever is said to be paused goes on. Then all of them are deleted. */
async function check(acknowledged: readonly string[], point: LifecyclePoint): Promise<void> {
  const { sandboxes, ledger, driver } = lab;
  for (const live of sandboxes.routes.all()) await live.exclusive(async () => {});
  for (const { sandboxId, state, incarnation, bootId, checkpoint } of ledger.sandboxes.live()) {
    if (state === 'paused') {
      assert.equal((await sandboxes.connect(sandboxId, 60)).resumed, true);
      assert.equal(ledger.sandboxes.get(sandboxId)?.bootId === bootId, checkpoint?.memory);
    } else {
      assert.equal(state, 'running');
      assert.equal(driver.vm(incarnation ?? '').state, 'running');
    }
  }
  const last = new Map(acknowledged.map((what) => what.split(' ').reverse() as [string, string]));
  for (const [id, what] of last) {
    // One that was told to be paused needs no VM any more.
    if (what === 'paused' && !RUNS_AGAIN.test(point))
      assert.ok(ledger.sandboxes.get(id)?.state !== 'lost', `${id} was paused`);
    if (what === 'snapshot') assert.deepEqual((await lab.repository.verify(id)).problems, []);
  }
  for (const { sandboxId } of ledger.sandboxes.live()) await sandboxes.kill(sandboxId);
  await Promise.all(sandboxes.routes.all().map((live) => live.gone));
  assert.deepEqual(await lab.leftovers(), []);
}
