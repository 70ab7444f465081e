import assert from 'node:assert/strict';
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ErrorAnswer } from '@aenv/contracts/api/error.ts';
import { inPrivateHost } from '@aenv/network/testing/private-host.ts';
import { foldersOf } from '@aenv/node/daemon/folders.ts';
import { run } from '@aenv/platform/process/run.ts';
import { Sandbox } from 'e2b';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { FaultPoints } from '../harness/fault-points.ts';
import { type BuildIds, HeldBuilds } from '../harness/held-builds.ts';
import { holdings } from '../harness/holdings.ts';
import { difference, inventory } from '../harness/inventory.ts';
import { ownAssets } from '../harness/own-assets.ts';
import { until } from '../harness/until.ts';

/**
 * T37: the daemon ends, by `kill -9` or in order, while everything is under way at the same time. One at a time, at each step
 * of each operation: faults.vm.test.ts; VMs that end with the daemon: leaks.vm.test.ts; a start that cannot be:
 * bad-times.vm.test.ts.
 */

const SOAK = process.env.AENV_SOAK === '1';
const READY_SLOTS = 2;
const TEMPLATES = ['captured', 'crashed', 'stopped', ...(SOAK ? ['given-up'] : [])];
const SHARED_ASSETS = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';

/** Writes a file, and tells its pid, a secret that only its memory has, and how far it is. */
const KEEPER = `
head -c 1000000 /dev/urandom > /root/disk
sha256sum /root/disk > /root/sums
secret=$(head -c 18 /dev/urandom | base64)
while true; do
  n=$((n + 1))
  echo $$ $secret $n > /run/keeper.new
  mv /run/keeper.new /run/keeper
  sleep 1
done`;

/** The name of the guest, and what its keeper tells the next time, unless the file has another content. */
const ASK = `
until [ -e /run/keeper ]; do sleep 0.2; done
before=$(cat /run/keeper)
while [ "$(cat /run/keeper)" = "$before" ]; do sleep 0.2; done
sha256sum --check --quiet /root/sums && echo $(hostname) $(cut -d ' ' -f 1,2 /run/keeper)`;

let daemon: TestDaemon;
let faults: FaultPoints;
let builds: HeldBuilds;
let assets: Awaited<ReturnType<typeof ownAssets>> | undefined;
/** what there is when nothing is under way */
let atRest: string[];
/** Pid and secret of the keeper. */
let kept: string;
/** ids: three that run, one that is paused, one that is in the middle of a pause when the daemon ends */
let ids: readonly string[];

/** Slots and processes are made anew behind the scenes, so what is there counts by kind. Files of zeros are kept. */
const look = async () => {
  const lines = await inventory({ folders: [daemon.home, daemon.runtime] });
  return lines.filter((line) => !/\/zero-\d+\.mem$/.test(line)).map((line) => line.replaceAll(/\d+/g, '#'));
};
const connect = (id: string) =>
  Sandbox.connect(id, {
    ...{ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey },
    ...{ timeoutMs: 600_000, requestTimeoutMs: 120_000 },
  });

function define(): void {
  before(async () => {
    assets = await ownAssets();
    // In their place, since captured machines are of certain paths: nobody else sees what is made of interrupted builds.
    await run(['mount', '--bind', assets.path, SHARED_ASSETS]);
    faults = await FaultPoints.open();
    builds = await HeldBuilds.open(TEMPLATES);
    daemon = await TestDaemon.start({
      ...faults.options,
      env: {
        ...{ ...faults.options.env, ...builds.env },
        ...{ AENV_NETWORK_SLOTS_LOW: `${READY_SLOTS}`, AENV_NETWORK_SLOTS_HIGH: `${READY_SLOTS}` },
        AENV_SHUTDOWN_ACTION: 'pause',
      },
    });
    // The first one brings what stays.
    assert.equal(await (await createSandbox(daemon)).kill(), true);
    await fullPool();
    atRest = await look();
    const source = await createSandbox(daemon);
    await source.commands.run(KEEPER, { background: true, timeoutMs: 0, user: 'root' });
    const [, ...told] = (await read(source.sandboxId)).split(' ');
    kept = told.join(' ');
    const forks = await source.fork({ count: 4, timeoutMs: 600_000 });
    ids = [source, ...forks].map((one) => (one instanceof Sandbox ? one.sandboxId : assert.fail(String(one))));
  });
  after(async () => {
    await faults?.disarm();
    builds?.release();
    await daemon?.[Symbol.asyncDispose]();
    for (const part of [builds, faults]) await part?.[Symbol.asyncDispose]();
    if (assets === undefined) return;
    await run(['umount', SHARED_ASSETS], { okCodes: [0, 32] });
    await assets[Symbol.asyncDispose]();
  });

  test('kill -9 in the midst of pauses and builds: all that was told holds, and a damaged file is told', async () => {
    const [paused = '', halfway = ''] = ids.slice(3);
    await pause(paused);
    const [last = ''] = await checkpointFiles();
    const capture = await holdCapture('captured');
    const build = await builds.startHeld(daemon, 'crashed');
    const unheard = Promise.allSettled([capture(), holdPause(halfway)]);
    await faults.reached('pause.memory_captured');
    await daemon.crash();
    for (const answer of await unheard) assert.equal(answer.status, 'rejected');
    await faults.disarm();
    const whole = await readFile(last);
    await truncate(last, whole.length >> 1);
    await daemon.launch();

    assert.deepEqual(await states(), { paused: [paused], running: ids.filter((id) => id !== paused).sort() });
    const refused = await daemon.api('POST', `/sandboxes/${paused}/connect`, { timeout: 600 });
    const told = (await refused.json()) as ErrorAnswer;
    assert.deepEqual([refused.status, told.error_code], [500, 'snapshot_corrupt'], JSON.stringify(told));
    assert.ok(told.remediation.length > 20);
    await Promise.all(ids.filter((id) => id !== paused).map(isWhole));
    await writeFile(last, whole);
    await isWhole(paused);
    await buildsAgain('crashed', build);
    if (SOAK) await capturesAgain('captured');
  });

  test('an orderly end in the midst of the same: what ran goes on by itself, what was paused stays so', async () => {
    const [paused = '', halfway = ''] = ids.slice(3);
    await pause(paused);
    const capture = SOAK ? await holdCapture('given-up') : undefined;
    const build = await builds.startHeld(daemon, 'stopped');
    const asked = holdPause(halfway);
    await faults.reached('pause.memory_captured');
    const stopped = daemon.stop();
    await until(async () => (await daemon.log()).includes('node ends'), {
      timeoutMs: 10_000,
      what: 'it is told to end',
    });
    await faults.disarm();
    assert.equal((await asked).status, 204);
    assert.equal(await stopped, 0, await daemon.log());
    if (capture !== undefined)
      assert.equal(((await (await capture()).json()) as ErrorAnswer).error_code, 'shutting_down');
    await daemon.launch();
    const running = ids.slice(0, 3);
    await until(async () => (await states()).running.length === running.length, {
      ...{ timeoutMs: 60_000, what: 'what ran runs again' },
    });
    assert.deepEqual(await states(), { paused: [paused, halfway].sort(), running: running.toSorted() });
    await Promise.all(ids.map(isWhole));
    await buildsAgain('stopped', build);
    if (SOAK) await capturesAgain('given-up');
  });

  if (SOAK) {
    test('whichever file of a pause is cut off, it is told, and the sandbox goes on when it is whole again', async () => {
      const [id = ''] = ids;
      await pause(id);
      for (const file of await checkpointFiles()) {
        const whole = await readFile(file);
        for (const length of [0, whole.length >> 1, whole.length - 1]) {
          await truncate(file, length);
          const refused = await daemon.api('POST', `/sandboxes/${id}/connect`, { timeout: 600 });
          const { error_code } = (await refused.json()) as ErrorAnswer;
          assert.equal(error_code, 'snapshot_corrupt', `${length} bytes of ${file}`);
          await writeFile(file, whole);
        }
      }
      await isWhole(id);
    });

    test('a cut-off record of the block daemon harms the sandbox that it belongs to, and no start', async () => {
      const [id = '', other = ''] = ids;
      const before = await diskRecords();
      await pause(id);
      const [record = '', ...others] = (await diskRecords()).filter((path) => !before.includes(path));
      assert.deepEqual(others, []);
      assert.equal(await daemon.stop(), 0);
      const whole = await readFile(record);
      await truncate(record, whole.length >> 1);
      await daemon.launch();
      const refused = await daemon.api('POST', `/sandboxes/${id}/connect`, { timeout: 600 });
      const { error_code, message } = (await refused.json()) as ErrorAnswer;
      assert.deepEqual([refused.status, error_code], [500, 'ledger_failed'], message);
      assert.ok(message.includes(record));
      await isWhole(other);
      assert.equal(await daemon.stop(), 0);
      await writeFile(record, whole);
      await daemon.launch();
      await isWhole(id);
    });
  }

  test('when all of it is deleted nothing is left on the host, and no series in the metrics', async () => {
    for (const id of ids) assert.equal((await daemon.api('DELETE', `/sandboxes/${id}`)).status, 204);
    for (const name of TEMPLATES) assert.equal((await daemon.api('DELETE', `/templates/${name}`)).status, 204);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    for (const id of ids) assert.ok(!metrics.includes(id));
    for (const [line, count] of metrics.matchAll(/^aenv_sandboxes\{state="\w+"\} (\d+)$/gm))
      assert.equal(count, '0', line);
    // What templates were captured as is looked through at the start.
    assert.equal(await daemon.stop(), 0);
    await daemon.launch();
    await fullPool();
    let left: string[] = [];
    const nothing = async () => {
      left = difference(atRest, await look());
      return left.length === 0;
    };
    await until(nothing, { timeoutMs: 30_000, everyMs: 500, what: 'nothing is left' }).catch(() =>
      assert.deepEqual(left, []),
    );
  });
}

async function read(id: string): Promise<string> {
  const { commands } = await connect(id);
  return (await commands.run(ASK, { user: 'root', timeoutMs: 60_000 })).stdout.trim();
}

/** It is who it was, has all that it had, and goes on with it; a paused one is resumed for that. */
async function isWhole(id: string): Promise<void> {
  assert.equal(await read(id), `${id} ${kept}`);
}

async function pause(id: string): Promise<void> {
  assert.equal((await daemon.api('POST', `/sandboxes/${id}/pause`)).status, 204);
}

/** A pause that waits when the memory is captured. */
async function holdPause(id: string): Promise<Response> {
  await faults.arm('pause.memory_captured');
  return await daemon.api('POST', `/sandboxes/${id}/pause`);
}

/**
 * Builds a template, and waits until a first sandbox of it is asked for, and what it is to start from is captured as far as
 * its memory. @returns the answer, when it comes
 */
async function holdCapture(name: string): Promise<() => Promise<Response>> {
  const image = await builds.start(daemon, name);
  assert.equal((await builds.outcome(daemon, image)).status, 'ready');
  await faults.arm('template.memory_captured');
  const asked = daemon.api('POST', '/v2/sandboxes', { templateID: name });
  asked.catch(() => {});
  await faults.reached('template.memory_captured');
  return () => asked;
}

async function capturesAgain(name: string): Promise<void> {
  assert.equal(await (await createSandbox(daemon, {}, name)).kill(), true);
}

async function states() {
  const list = (await (await daemon.api('GET', '/v2/sandboxes')).json()) as { sandboxID: string; state: string }[];
  const inState = (wanted: string) =>
    list.flatMap(({ sandboxID, state }) => (state === wanted ? [sandboxID] : [])).sort();
  return { paused: inState('paused'), running: inState('running') };
}

/** An interrupted build has failed with its reason, has left no template, and succeeds when it is asked for again. */
async function buildsAgain(name: string, interrupted: BuildIds): Promise<void> {
  const { status, reason } = await builds.outcome(daemon, interrupted);
  assert.equal(status, 'error');
  assert.match(reason, /stopped while the template was being built/);
  assert.equal((await daemon.api('GET', `/templates/${name}`)).status, 404);
  builds.release();
  const again = await builds.start(daemon, name);
  assert.deepEqual(await builds.outcome(daemon, again), { status: 'ready', reason: '' });
}

/** Files of the one checkpoint that there is, the last written first, without what it shares and what blockd has of it. */
async function checkpointFiles(): Promise<string[]> {
  const [checkpoint, ...others] = (await holdings(daemon)).checkpoints;
  assert.ok(checkpoint !== undefined && others.length === 0);
  const folder = join(foldersOf(daemon).snapshots, 'by-id', checkpoint);
  const files: { readonly path: string; readonly at: number }[] = [];
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    files.push({ path, at: (await stat(path)).mtimeMs });
  }
  return files.sort((one, other) => other.at - one.at).map(({ path }) => path);
}

/** Paths of what the block daemon keeps of disks that were captured. */
async function diskRecords(): Promise<string[]> {
  const folder = join(foldersOf(daemon).volumes, 'snapshots');
  return (await readdir(folder)).map((name) => join(folder, name));
}

async function fullPool(): Promise<void> {
  const isFull = async () => {
    const text = await (await fetch(`${daemon.url}/metrics`)).text();
    return new RegExp(`^aenv_network_slots\\{state="ready"\\} ${READY_SLOTS}$`, 'm').test(text);
  };
  await until(isFull, { timeoutMs: 60_000, what: 'the pool of slots is full' });
}

// What other daemons of this machine hold is not seen there, and whatever is left is ours.
await inPrivateHost(import.meta.url, define, SOAK ? 3_600_000 : 580_000);
