import assert from 'node:assert/strict';
import { readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ForkResult } from '@aenv/contracts/api/fork.ts';
import { inPrivateHost } from '@aenv/network/testing/private-host.ts';
import { LIFECYCLE_POINTS } from '@aenv/node/sandboxes/faults.ts';
import { run } from '@aenv/platform/process/run.ts';
import { Sandbox } from 'e2b';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { FaultPoints } from '../harness/fault-points.ts';
import { difference, inventory } from '../harness/inventory.ts';
import { until } from '../harness/until.ts';

/** A host that has too little memory or disk for what is asked of it. A full disk of a guest: full-disk.vm.test.ts. */

const SOAK = process.env.AENV_SOAK === '1';
const HOME_MB = 1500;
const MEMINFO = '/proc/meminfo';
/**
 * Where the disk gets full, in the midst of something that was promised the room. The guest stands still there: one that
 * runs may have to write itself.
 */
const STANDS_STILL = /^(snapshot|fork)\.(machine_stopped|disk_taken)$|^pause\.(machine_stopped|disk_taken|durable)$/;
const ALL = LIFECYCLE_POINTS.filter((point) => STANDS_STILL.test(point));
const MIDWAY = SOAK ? ALL : (['snapshot.machine_stopped', 'fork.machine_stopped'] as const);

const COUNTER = `
secret=$(head -c 18 /dev/urandom | base64)
while true; do n=$((n + 1)); echo $$ $secret $n > /run/counter.new; mv /run/counter.new /run/counter; sleep 0.5; done`;
/** Pid and secret of the counter, when it has gone on; the disk takes what is written to it. */
const ASK = `
before=$(cat /run/counter); while [ "$(cat /run/counter)" = "$before" ]; do sleep 0.2; done
date > /root/date && sync && cut -d ' ' -f 1,2 /run/counter`;

let daemon: TestDaemon;
let faults: FaultPoints;
let source: Sandbox;
let had: string;
/** what there is without the source */
let atRest: string[];
/** what MEMINFO is read from */
let meminfo: string;

function define(): void {
  before(async () => {
    faults = await FaultPoints.open();
    const { env, program } = faults.options;
    const limits = { AENV_LIMITS_MEMORY_SHARE: '1', AENV_LIMITS_MAX_CONCURRENT_STARTS: '2' };
    const slots = { AENV_NETWORK_SLOTS_LOW: '2', AENV_NETWORK_SLOTS_HIGH: '2' };
    daemon = await TestDaemon.start({
      program,
      env: { ...env, ...limits, ...slots, AENV_STORAGE_KEEP_FREE_BYTES: '0' },
    });
    await daemon.stop();
    // Only what is kept: the log of the daemon is beside it.
    await run(['mount', '-t', 'tmpfs', '-o', `size=${HOME_MB}m,mode=0711`, 'tmpfs', daemon.home]);
    meminfo = `${daemon.runtime}-meminfo`;
    await writeFile(meminfo, await readFile(MEMINFO));
    await run(['mount', '--bind', meminfo, MEMINFO]);
    await daemon.launch();
    // The first one brings what stays.
    assert.equal(await (await createSandbox(daemon)).kill(), true);
    await fullPool();
    atRest = await look();
    source = await createSandbox(daemon);
    await source.commands.run(COUNTER, { background: true, timeoutMs: 0, user: 'root' });
    await until(async () => await source.files.exists('/run/counter'), { timeoutMs: 60_000, what: 'it counts' });
    had = await ask(source);
  });
  after(async () => {
    await faults?.disarm();
    await run(['umount', MEMINFO], { okCodes: [0, 32] });
    await daemon?.stop();
    await run(['umount', daemon.home], { okCodes: [0, 32] });
    await daemon?.[Symbol.asyncDispose]();
    await faults?.[Symbol.asyncDispose]();
  });

  test('a fork for whose children the host has no memory is refused before anything is made; where one fits, one is', async () => {
    await fullPool();
    const held = await look();
    await available(511);
    await refused(fork(3), 503, 'capacity_exhausted', /memory/);
    assert.deepEqual(difference(held, await look()), []);
    assert.equal(await ask(source), had);

    await available(512);
    const answer = await fork(3);
    assert.equal(answer.status, 201);
    await available(1_000_000);
    const forks = answer.body as ForkResult[];
    assert.equal(forks.length, 3);
    for (const { error } of forks.slice(1)) {
      assert.deepEqual([error?.code, error?.error_code], [503, 'capacity_exhausted']);
      assert.match(`${error?.message} ${error?.remediation}`, /of memory .*limits\.memory_share/);
    }
    const child = await connect(forks[0]?.sandbox?.sandboxID ?? '');
    assert.equal(await ask(child), had);
    assert.equal(await child.kill(), true);
    await isAsBefore(held);
    assert.equal(await ask(source), had);
  });

  test('a fork, a snapshot or a pause for which the disk has no room is refused before anything is made', async () => {
    await fullPool();
    const held = await look();
    await leave(64);
    for (const asked of [fork(2), snapshot(), pause()]) await refused(asked, 507, 'no_space', /MiB free/);
    assert.deepEqual(difference(held, await look()), []);
    await room();
    assert.equal(await ask(source), had);
  });

  for (const point of MIDWAY) {
    test(`the disk gets full at ${point}: it is told, nothing is half made, and the sandbox is as it was`, async () => {
      await fullPool();
      const held = await look();
      await faults.arm(point);
      const asked = point.startsWith('fork.') ? fork(2) : point.startsWith('snapshot.') ? snapshot() : pause();
      await faults.reached(point);
      await leave(0).finally(() => faults.disarm());
      const { status, body } = await asked.finally(room);
      // What was on the disk already may be done.
      if (status < 300) await remove(body);
      else await refused(asked, 507, 'no_space', /./);
      assert.equal(await ask(await connect(source.sandboxId)), had);
      if (status >= 300) await isAsBefore(held);
    });
  }

  test('when the source is deleted nothing is left of all that', async () => {
    assert.equal(await source.kill(), true);
    await fullPool();
    await isAsBefore(atRest, () => true);
  });
}

async function ask(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run(ASK, { user: 'root', timeoutMs: 60_000 })).stdout.trim();
}

async function api(path: string, body: unknown) {
  const answer = await daemon.api('POST', `/sandboxes/${source.sandboxId}/${path}`, body);
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? {} : JSON.parse(text) };
}
const fork = (count: number) => api('fork', { count, timeout: 600 });
const snapshot = () => api('snapshots', {});
const pause = () => api('pause', {});

const connection = () => ({
  apiUrl: daemon.url,
  sandboxUrl: daemon.url,
  apiKey: daemon.apiKey,
  requestTimeoutMs: 120_000,
});
const connect = (id: string) => Sandbox.connect(id, { ...connection(), timeoutMs: 600_000 });

async function refused(asked: ReturnType<typeof api>, status: number, code: string, message: RegExp): Promise<void> {
  const { body, ...answer } = await asked;
  assert.deepEqual([answer.status, body.error_code], [status, code], JSON.stringify(body));
  assert.match(body.message, message);
  assert.ok(body.remediation.length > 20);
}

/** Removes what came of a fork or a snapshot; children that were not made say why. */
async function remove(body: unknown): Promise<void> {
  for (const { sandbox, error } of Array.isArray(body) ? (body as ForkResult[]) : []) {
    if (sandbox === undefined) assert.equal(error?.error_code, 'no_space', JSON.stringify(error));
    else assert.equal(await Sandbox.kill(sandbox.sandboxID, connection()), true);
  }
  const { snapshotID } = body as { snapshotID?: string };
  if (snapshotID !== undefined) assert.equal(await Sandbox.deleteSnapshot(snapshotID, connection()), true);
}

/** The host has so many MiB of memory that it could give. */
async function available(mb: number): Promise<void> {
  const text = await readFile(meminfo, 'utf8');
  await writeFile(meminfo, text.replace(/^MemAvailable:.*$/m, `MemAvailable: ${mb * 1024} kB`));
}

const filler = () => join(daemon.home, 'filler');

/** The disk of the daemon has only so many MiB left. */
async function leave(mb: number): Promise<void> {
  const { bavail, bsize } = await statfs(daemon.home);
  const bytes = bavail * bsize - mb * 2 ** 20;
  await run(['fallocate', '--length', `${bytes}`, filler()]);
}

async function room(): Promise<void> {
  await rm(filler(), { force: true });
}

async function look(): Promise<string[]> {
  const lines = await inventory({ folders: [daemon.home, daemon.runtime] });
  return lines.filter((line) => line !== `file ${filler()}`);
}

/** What the disk of the source has written is sealed by a capture, and it goes on in another file. */
const notOfDisk = (line: string) => !/\/(volumes\/layers|blockd\/pending)\//.test(line);

/** Slots are made anew behind the scenes. */
async function isAsBefore(held: readonly string[], counts = notOfDisk): Promise<void> {
  const numberless = (lines: readonly string[]) => lines.filter(counts).map((line) => line.replaceAll(/\d+/g, '#'));
  let left: string[] = [];
  const same = async () => {
    left = difference(numberless(held), numberless(await look()));
    return left.length === 0;
  };
  await until(same, { timeoutMs: 30_000, what: 'all is as before' }).catch(() => assert.deepEqual(left, []));
}

async function fullPool(): Promise<void> {
  const isFull = async () => {
    const text = await (await fetch(`${daemon.url}/metrics`)).text();
    return /^aenv_network_slots\{state="ready"\} 2$/m.test(text);
  };
  await until(isFull, { timeoutMs: 60_000, what: 'the pool of slots is full' });
}

// Its disk and what it tells of its memory are those of this test.
await inPrivateHost(import.meta.url, define, SOAK ? 3_600_000 : 580_000);
