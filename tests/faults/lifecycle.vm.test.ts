import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { LIFECYCLE_POINTS, type LifecyclePoint } from '@aenv/node/sandboxes/faults.ts';
import { FaultLab } from '@aenv/node/sandboxes/testing/fault-lab.ts';

/**
 * Daemon and block daemon are killed at every step of the lifecycle; ledger, snapshots, disks and processes are real, VMs
 * are not. What dies with its VM: packages/node/sandboxes/faults.test.ts.
 */

const SCENARIO = fileURLToPath(import.meta.resolve('@aenv/node/sandboxes/testing/fault-scenario.ts'));

const SOAK = process.env.AENV_SOAK === '1';
/** Steps before, between and after what is asked of the block daemon; the others follow in the long run. */
const disksAreInUse = (point: string) =>
  /row_written|row_resuming|row_paused|machine_stopped|disk_taken|captured$|warm\.(parts_)?taken$/.test(point);

/**
 * What a pause without memory has in common with the other one, and a comeback with other resumes, follows in the long run,
 * too, and so do the steps in between of what comes to stand ready.
 */
const LATER =
  /^(pause_disk\.(synced|row_paused|released)|comeback\.(guest_answered|checkpoint_removed)|warm\.(guest_used|goes_on))$/;
const POINTS = SOAK ? LIFECYCLE_POINTS : LIFECYCLE_POINTS.filter((point) => !LATER.test(point));

let storage: StorageHost;
let layer: string;
before(async () => {
  storage = await StorageHost.open();
  layer = (await storage.layer(2 ** 20, 4096)).path;
});
after(async () => {
  await storage?.[Symbol.asyncDispose]();
});

describe('the daemon is killed', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(storage.root, 'node-'));
  });
  for (const point of POINTS) {
    test(`at ${point}: what was acknowledged is there, the rest is not, nothing leaks`, async () => {
      const acknowledged = await crashAt(root, point);
      await using next = await openLab(root, async () => {});
      // What a killed builder leaves is removed by the next one, which succeeds.
      if (point.startsWith('template.')) await next.lab.run(point, (what) => acknowledged.push(what));
      await check(next.lab, acknowledged, { point, vmsLived: false });
    });
  }
});

describe('the block daemon is killed', () => {
  let root: string;
  let armed: LifecyclePoint | undefined;
  let open: Awaited<ReturnType<typeof openLab>>;
  before(async () => {
    root = await mkdtemp(join(storage.root, 'node-'));
    open = await openLab(root, async (reached) => {
      if (reached !== armed) return;
      armed = undefined;
      await storage.killDaemon();
    });
  });
  after(async () => {
    await open?.[Symbol.asyncDispose]();
  });
  for (const point of SOAK ? POINTS : POINTS.filter(disksAreInUse)) {
    test(`at ${point}: the operation succeeds or fails as a whole, nothing leaks`, async () => {
      armed = point;
      const acknowledged: string[] = [];
      await open.lab
        .run(point, (what) => acknowledged.push(what))
        .catch((error: unknown) => assert.ok(error instanceof AenvError, String(error)));
      assert.equal(armed, undefined, 'the point was not passed');
      await check(open.lab, acknowledged, { point, vmsLived: true });
    });
  }
});

async function openLab(root: string, hit: (point: LifecyclePoint) => Promise<void>) {
  const lab = await FaultLab.open({ root, layer, volumes: storage.store, faults: { hit } });
  return { lab, [Symbol.asyncDispose]: () => lab.close() };
}

/** @returns what a node had acknowledged that was killed at a point */
async function crashAt(root: string, point: LifecyclePoint): Promise<string[]> {
  const child = spawn(process.execPath, [SCENARIO, root, storage.root, layer, point], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGKILL', `${point} was not reached`);
  return output.split('\n').filter((line) => line !== '');
}

interface Circumstances {
  readonly point: LifecyclePoint;
  /** VMs of a daemon that was killed are gone with it here */
  readonly vmsLived: boolean;
}

/** What was paused runs by then, though nobody has been told; it was lost with its VM. */
const RUNS_AGAIN = /^(resume|comeback)\.(row_running|checkpoint_removed)$/;

/** The last that was said of each id holds; then everything is deleted, and nothing may be left. */
async function check(lab: FaultLab, acknowledged: readonly string[], { point, vmsLived }: Circumstances) {
  const { sandboxes, ledger, repository } = lab;
  for (const live of sandboxes.routes.all()) await live.exclusive(async () => {});
  const last = new Map(acknowledged.map((line) => line.split(' ').reverse() as [string, string]));
  for (const [id, what] of last) {
    const state = ledger.sandboxes.get(id)?.state;
    if (what === 'paused' && !RUNS_AGAIN.test(point)) assert.equal(state, 'paused', `${id} was paused`);
    if (what === 'running' && vmsLived) assert.ok(state === 'running' || state === 'paused', `${id} is ${state}`);
    if (what === 'snapshot') assert.deepEqual((await repository.verify(id)).problems, []);
    if (what === 'template') assert.ok((await repository.list()).some((one) => one.id === id));
  }
  // A pause that was complete counts, although nobody had been told.
  if (/^pause.*\.durable$/.test(point))
    assert.deepEqual(
      [...last.keys()].map((id) => ledger.sandboxes.get(id)?.state),
      ['paused'],
    );
  for (const { sandboxId, state, bootId, checkpoint } of ledger.sandboxes.live()) {
    assert.ok(state === 'paused' || (vmsLived && state === 'running'), `${sandboxId} is ${state}`);
    if (state !== 'paused') continue;
    assert.equal((await sandboxes.connect(sandboxId, 60)).resumed, true);
    assert.equal(ledger.sandboxes.get(sandboxId)?.bootId === bootId, checkpoint?.memory, 'another guest');
  }
  for (const { sandboxId } of ledger.sandboxes.live()) await sandboxes.kill(sandboxId);
  await Promise.all(sandboxes.routes.all().map((live) => live.gone));
  assert.deepEqual(await lab.leftovers(), []);
}
