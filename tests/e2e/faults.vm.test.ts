import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { foldersOf } from '@aenv/node/daemon/folders.ts';
import { LIFECYCLE_POINTS, type LifecyclePoint } from '@aenv/node/sandboxes/faults.ts';
import { Sandbox } from 'e2b';
import { TestDaemon } from '../harness/daemon.ts';
import { FaultPoints } from '../harness/fault-points.ts';
import { holdings } from '../harness/holdings.ts';
import { until } from '../harness/until.ts';
import { kill, VICTIMS, type Victim } from '../harness/victims.ts';

/**
 * Real processes are killed while real VMs are captured and continued. Every step, with VMs that are fakes: tests/faults and
 * packages/node/sandboxes/faults.test.ts; captures of templates are there alone. What stands ready: faults-warm.vm.test.ts.
 */

/** Where a real VM has most that a fake has not; the others follow in the long run. */
const CHOSEN: readonly (readonly [Victim, LifecyclePoint])[] = [
  ['vm', 'pause.disk_taken'],
  ['daemon', 'resume.guest_answered'],
  ['blockd', 'snapshot.memory_captured'],
  ['blockd', 'pause.memory_captured'],
  ['daemon', 'pause.durable'],
  ['daemon', 'fork.child_answered'],
  ['vm', 'pause.machine_stopped'],
  ['daemon', 'comeback.row_resuming'],
];
const ALL = LIFECYCLE_POINTS.filter((point) => !/^(template|warm)\./.test(point)).flatMap((point) =>
  VICTIMS.map((victim) => [victim, point] as const),
);
const SOAK = process.env.AENV_SOAK === '1';
const CASES = SOAK ? ALL : CHOSEN;
const RESTARTS = SOAK ? 20 : 3;

/** From here on a pause needs the VM no more, and one that is paused needs none. */
const WHOLE = /^pause.*\.(memory_captured|disk_taken|durable|row_paused|released)$|^(resume|comeback)\.row_resuming$/;
/** It depends on whether the end of the VM is seen before the sandbox counts as paused, or as running. */
const EITHER = /^pause_disk\.machine_stopped$|^(resume|comeback)\.guest_answered$/;

let daemon: TestDaemon;
let faults: FaultPoints;
let subject: { readonly id: string; readonly boot: string } | undefined;

before(async () => {
  faults = await FaultPoints.open();
  const { env, program } = faults.options;
  daemon = await TestDaemon.start({ program, env: { ...env, AENV_SHUTDOWN_ACTION: 'pause' } });
});
after(async () => {
  await faults?.disarm();
  await daemon?.[Symbol.asyncDispose]();
  await faults?.[Symbol.asyncDispose]();
});

for (const [victim, point] of CASES) {
  test(`${victim} is killed at ${point}: what was told holds, content is whole, nothing is left`, async () => {
    const { id, boot } = await ensureSubject();
    // What fails here leaves it in a state that nobody knows; the next one gets another.
    subject = undefined;
    const operation = point.slice(0, point.indexOf('.'));
    if (operation === 'resume') await ask('POST', `/sandboxes/${id}/pause`);
    if (operation === 'comeback') assert.equal(await daemon.stop(), 0);
    await faults.arm(point);
    const asked = perform(operation, id);
    asked.catch(() => {});
    await faults.reached(point);
    await kill(daemon, victim);
    await faults.disarm();
    const answer = await asked.catch(() => undefined);
    if (victim === 'daemon') await daemon.launch();
    else assert.ok(answer !== undefined);
    // Whoever is refused is told why.
    if (answer !== undefined && !answer.ok)
      assert.equal(typeof answer.body.error_code, 'string', JSON.stringify(answer));

    let state = await stateOf(id);
    if (victim !== 'vm' || WHOLE.test(point)) assert.ok(state === 'running' || state === 'paused', state);
    else {
      const settled = async () => {
        state = await stateOf(id);
        return state === undefined || (EITHER.test(point) && state === 'paused');
      };
      await until(settled, { timeoutMs: 20_000, what: 'the end of its VM is seen' });
    }
    if (operation.startsWith('pause') && (answer?.ok || /\.(durable|row_paused|released)$/.test(point)))
      assert.equal(state, 'paused');
    // Whom only a shutdown has paused, nobody has to ask to go on.
    if (operation === 'comeback' && victim !== 'vm') {
      await until(async () => (await stateOf(id)) === 'running', { timeoutMs: 60_000, what: 'it has come back' });
    }
    if (state !== undefined) {
      const went = await contentOf(id);
      // Only a pause without memory boots it again.
      assert.equal(went === boot, state === 'running' || operation !== 'pause_disk');
      subject = { id, boot: went };
    }
    if (operation === 'snapshot') await snapshotsAreWhole(answer);
    await onlyTheSubjectIsLeft();
  });
}

test(`${RESTARTS} crashes in a row change nothing for a sandbox; of what is over no series is left`, async () => {
  const { id, boot } = await ensureSubject();
  for (let round = 0; round < RESTARTS; round++) {
    await daemon.crash();
    await daemon.launch();
    assert.equal(await stateOf(id), 'running');
  }
  assert.equal(await contentOf(id), boot);
  assert.ok((await ask('DELETE', `/sandboxes/${id}`)).ok);
  subject = undefined;
  await onlyTheSubjectIsLeft();
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  assert.ok(!text.includes(id));
  const states = [...text.matchAll(/^aenv_sandboxes\{state="(\w+)"\} (\d+)$/gm)];
  assert.ok(states.length > 0 && states.every(([, , count]) => count === '0'), states.join('\n'));
});

async function ask(method: string, path: string, body?: unknown) {
  const response = await daemon.api(method, path, body);
  const text = await response.text();
  return { ok: response.ok, status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

/** What was told is there; what is there is whole, also when nobody could be told. All of them go. */
async function snapshotsAreWhole(told: { readonly ok: boolean; readonly body: unknown } | undefined): Promise<void> {
  const { body } = await ask('GET', '/snapshots');
  const ids = (body as { readonly snapshotID: string }[]).map(({ snapshotID }) => snapshotID);
  if (told?.ok) assert.ok(ids.includes((told.body as { readonly snapshotID: string }).snapshotID));
  for (const id of ids) {
    const name = encodeURIComponent(id);
    const verified = await ask('POST', `/snapshots/${name}/verify`);
    assert.deepEqual(verified.body.problems, []);
    assert.ok((await ask('DELETE', `/templates/${name}`)).ok);
  }
}

function perform(operation: string, id: string) {
  if (operation === 'create') return ask('POST', '/v2/sandboxes', { templateID: 'base', timeout: 600 });
  if (operation === 'pause') return ask('POST', `/sandboxes/${id}/pause`);
  if (operation === 'pause_disk') return ask('POST', `/sandboxes/${id}/pause`, { memory: false });
  if (operation === 'resume') return ask('POST', `/sandboxes/${id}/connect`, { timeout: 600 });
  if (operation === 'snapshot') return ask('POST', `/sandboxes/${id}/snapshots`, {});
  if (operation === 'comeback') return comeBack();
  assert.equal(operation, 'fork');
  return ask('POST', `/sandboxes/${id}/fork`, { count: 2, timeout: 600 });
}

/** The start after a shutdown, which serves before it has let all go on. */
async function comeBack() {
  await daemon.launch();
  return { ok: true, status: 200, body: {} };
}

const connection = () => ({ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey });

async function root(id: string, command: string): Promise<string> {
  const sandbox = await Sandbox.connect(id, { ...connection(), timeoutMs: 600_000, requestTimeoutMs: 120_000 });
  return (await sandbox.commands.run(command, { user: 'root', timeoutMs: 60_000 })).stdout.trim();
}

/** A sandbox with content on its disk and in its memory, which is used until its VM is killed. */
async function ensureSubject(): Promise<{ readonly id: string; readonly boot: string }> {
  if (subject !== undefined) return subject;
  const made = await ask('POST', '/v2/sandboxes', { templateID: 'base', timeout: 600 });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const id: string = made.body.sandboxID;
  await root(id, 'cd /root && head -c 3000000 /dev/urandom > disk && cp disk /dev/shm/memory && sha256sum disk > sums');
  subject = { id, boot: await contentOf(id) };
  return subject;
}

/** All that it had is as it was; it goes on for that if it is paused. @returns boot id of its kernel */
async function contentOf(id: string): Promise<string> {
  const whole = 'cd /root && sha256sum --check --quiet sums && touch /root/after && rm /root/after && sync';
  const inMemory = 'if [ -e /dev/shm/memory ]; then cmp /dev/shm/memory /root/disk; fi';
  return await root(id, `${whole} && ${inMemory} && cat /proc/sys/kernel/random/boot_id`);
}

async function stateOf(id: string): Promise<string | undefined> {
  const { status, body } = await ask('GET', `/sandboxes/${id}`);
  return status === 404 ? undefined : body.state;
}

async function onlyTheSubjectIsLeft(): Promise<void> {
  for (const { sandboxID } of (await ask('GET', '/v2/sandboxes')).body as { sandboxID: string }[]) {
    if (sandboxID !== subject?.id) assert.ok((await ask('DELETE', `/sandboxes/${sandboxID}`)).ok);
  }
  const expected = subject === undefined ? 0 : 1;
  const disks = { checkpoints: [], disks: expected, disksOfCheckpoints: 0 };
  await until(
    async () => {
      const serial = (await readdir(foldersOf(daemon).serial)).join(' ');
      assert.deepEqual(await holdings(daemon), { ...disks, processes: expected, runFolders: expected }, serial);
      return true;
    },
    { timeoutMs: 60_000, what: 'nothing is left of what failed' },
  );
}
