import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LIFECYCLE_POINTS, type LifecyclePoint } from '@aenv/node/sandboxes/faults.ts';
import { Sandbox } from 'e2b';
import { TestDaemon } from '../harness/daemon.ts';
import { FaultPoints } from '../harness/fault-points.ts';
import { holdings } from '../harness/holdings.ts';
import { until } from '../harness/until.ts';
import { kill, VICTIMS, type Victim } from '../harness/victims.ts';

/** Real processes are killed while a real VM comes to stand ready, or becomes a sandbox. Other steps: faults.vm.test.ts. */

const CHOSEN: readonly (readonly [Victim, LifecyclePoint])[] = [['daemon', 'warm.taken']];
const ALL = LIFECYCLE_POINTS.filter((point) => point.startsWith('warm.')).flatMap((point) =>
  VICTIMS.map((victim) => [victim, point] as const),
);
const CASES = process.env.AENV_SOAK === '1' ? ALL : CHOSEN;
const WARM = { AENV_WARM_LOW: '1', AENV_WARM_HIGH: '1' };
/** Passed when somebody asks for a sandbox; the others, when the daemon has started. */
const BY_CREATE: readonly LifecyclePoint[] = ['warm.taken', 'warm.goes_on'];

let daemon: TestDaemon;
let faults: FaultPoints;
before(async () => {
  faults = await FaultPoints.open();
  daemon = await TestDaemon.start(faults.options);
});
after(async () => {
  await faults?.disarm();
  await daemon?.[Symbol.asyncDispose]();
  await faults?.[Symbol.asyncDispose]();
});

for (const [victim, point] of CASES) {
  test(`${victim} is killed at ${point}: sandboxes are made all the same, and nothing is left`, async () => {
    assert.equal(await daemon.stop(), 0);
    const byCreate = BY_CREATE.includes(point);
    if (!byCreate) await faults.arm(point);
    await daemon.launch(WARM);
    let asked: ReturnType<typeof create> | undefined;
    if (byCreate) {
      await until(async () => (await ready()) === 1, { timeoutMs: 120_000, what: 'one stands ready' });
      await faults.arm(point);
      asked = create();
      asked.catch(() => {});
    }
    await faults.reached(point);
    await kill(daemon, victim);
    await faults.disarm();
    if (victim === 'daemon') {
      await daemon.launch();
      await nothingIsLeft();
    } else if (asked !== undefined) await isUsable(await asked);
    await isUsable(await create());
    if (victim !== 'daemon') {
      // What still stands ready goes in order.
      assert.equal(await daemon.stop(), 0);
      assert.doesNotMatch(await daemon.log(), /could not be removed/);
      await daemon.launch();
    }
    await nothingIsLeft();
  });
}

async function create() {
  const answer = await daemon.api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 600 });
  return { status: answer.status, body: (await answer.json()) as { sandboxID: string } };
}

/** Whatever happened to one that stood ready: there is a sandbox in its place. */
async function isUsable({ status, body }: Awaited<ReturnType<typeof create>>): Promise<void> {
  assert.equal(status, 201, JSON.stringify(body));
  const connection = { apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey };
  const sandbox = await Sandbox.connect(body.sandboxID, { ...connection, requestTimeoutMs: 120_000 });
  const { stdout } = await sandbox.commands.run('hostname; sync', { user: 'root' });
  assert.equal(stdout, `${sandbox.sandboxId}\n`);
  assert.equal(await sandbox.kill(), true);
}

async function ready(): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  return Number(/^aenv_warm_sandboxes (\d+)$/m.exec(text)?.[1]);
}

async function nothingIsLeft(): Promise<void> {
  const nothing = { checkpoints: [], processes: 0, runFolders: 0, disks: 0, disksOfCheckpoints: 0 };
  const isSo = async () => {
    assert.deepEqual(await holdings(daemon), nothing);
    return true;
  };
  await until(isSo, { timeoutMs: 60_000, what: 'nothing is left' });
}
