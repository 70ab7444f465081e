import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { identify, isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import { childEvent } from '@aenv/platform/testing/child-event.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import { fullRecord } from '../../store/testing/records.ts';
import type { SandboxState } from '../contract.ts';
import { FakeHost } from '../testing/fake-host.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { type RecoveryOptions, recover } from './recover.ts';

let root = '';
let ledger: Ledger;
let options: RecoveryOptions;
let host: FakeHost;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aenv-recovery-'));
  ledger = openLedger(join(root, 'home'));
  host = new FakeHost();
  options = {
    ledger: ledger.sandboxes,
    volumes: host.volumes,
    hasCheckpoint: async ({ id }) => host.checkpointsOnDisk.has(id),
    runtimeDir: join(root, 'run'),
    vmDir: join(root, 'run', 'vm'),
    vmFileDirs: [{ path: join(root, 'home', 'serial'), keep: /^shared/ }],
    keepVms: false,
    removeNetwork: async () => 0,
    clock: new ManualClock(),
    log: silentLogger,
  };
});
afterEach(async () => {
  ledger.close();
  await rm(root, { recursive: true, force: true });
});

/** A process that looks like `program` with this argument. */
async function plant(program: string, argument: string) {
  const script = 'setTimeout(() => {}, 60_000); console.log("up")';
  const child = spawn(process.execPath, ['-e', script, argument], {
    argv0: program,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await childEvent(child, child.stdout, 'data');
  const identity = await identify(child.pid ?? 0);
  assert.ok(identity);
  return identity;
}

const { vm: _vm, ...bare } = fullRecord();
const row = (sandboxId: string, state: SandboxState, changes: Partial<SandboxRecord> = {}) => ({
  ...bare,
  ...changes,
  sandboxId,
  state,
});

test('after a clean end there is nothing to do', async () => {
  const report = await recover(options);
  assert.deepEqual(report, {
    lost: [],
    running: [],
    paused: 0,
    processes: 0,
    network: 0,
    mounts: 0,
    runFolders: 0,
    files: 0,
    volumes: 0,
    failures: [],
  });
});

test('what was alive is lost with a reason, its secrets are gone, and what was over stays as it was', async () => {
  for (const state of ['creating', 'running', 'killing'] as const) ledger.sandboxes.insert(row(`i${state}`, state));
  ledger.sandboxes.insert(row('iover', 'running'));
  ledger.sandboxes.update('iover', 'running', { state: 'ended', endReason: 'killed', endedAt: new Date(5) });
  const report = await recover(options);
  assert.deepEqual([...report.lost].sort(), ['icreating', 'ikilling', 'irunning']);
  for (const id of report.lost) {
    const record = ledger.sandboxes.get(id);
    assert.equal(record?.state, 'lost');
    assert.equal(record?.endReason, 'daemon_crashed');
    assert.match(record?.endMessage ?? '', /went down/);
    assert.equal(record?.endedAt?.getTime(), options.clock.now());
    assert.equal(record?.hostSecret, '');
    assert.equal(record?.envdAccessToken, undefined);
  }
  assert.equal(ledger.sandboxes.get('iover')?.endReason, 'killed');
  assert.deepEqual(ledger.sandboxes.live(), []);
});

test('ends VM processes of our folder and no other process', async () => {
  const ours = await plant('/opt/qemu/bin/qemu-system-x86_64', `socket,id=qmp,path=${options.vmDir}/i1-x/qmp.sock`);
  const others = await Promise.all([
    plant('/opt/qemu/bin/qemu-system-x86_64', `socket,id=qmp,path=${options.vmDir}-other/i1-x/qmp.sock`),
    plant('tail', `${options.vmDir}/i1-x/stderr.log`),
  ]);
  try {
    const report = await recover(options);
    assert.equal(report.processes, 1);
    assert.equal(await isAlive(ours), false);
    for (const other of others) assert.equal(await isAlive(other), true);
  } finally {
    await Promise.all([ours, ...others].map((process) => killAndWait(process)));
  }
});

test('removes run folders, files of VMs and volumes, all of them', async () => {
  await mkdir(join(options.vmDir, 'i1-abc', 'deep'), { recursive: true });
  await writeFile(join(options.vmDir, 'i1-abc', 'deep', 'qmp.sock'), '');
  await mkdir(join(root, 'home', 'serial'));
  await writeFile(join(root, 'home', 'serial', 'i1-abc.log'), 'x');
  await writeFile(join(root, 'home', 'serial', 'shared.mem'), 'x');
  host.volumesOnDisk.add('i1').add('i2');
  const report = await recover(options);
  assert.deepEqual([report.runFolders, report.files, report.volumes], [1, 1, 2]);
  assert.deepEqual(await readdir(options.vmDir), []);
  assert.deepEqual(await readdir(join(root, 'home', 'serial')), ['shared.mem']);
  assert.deepEqual(host.inventory(), []);
});

test('a step that fails is reported, and the others are done all the same', async () => {
  ledger.sandboxes.insert(row('irunning', 'running'));
  host.volumesOnDisk.add('i1');
  options = {
    ...options,
    removeNetwork: async () => {
      throw new Error('nft is not installed');
    },
  };
  const report = await recover(options);
  assert.deepEqual(report.failures, ['network: nft is not installed']);
  assert.equal(report.volumes, 1);
  assert.equal(ledger.sandboxes.get('irunning')?.state, 'lost');
});

test('what is paused stays so, also when the daemon died before it could say so or while it was resumed', async () => {
  const checkpoint = (id: string) => ({ checkpoint: { id, memory: true } });
  host.checkpointsOnDisk.set('whole', { hostSecret: 's', bootId: 'b', drives: [] });
  ledger.sandboxes.insert(row('ia', 'paused', checkpoint('whole')));
  ledger.sandboxes.insert(row('ib', 'pausing', checkpoint('whole')));
  ledger.sandboxes.insert(row('ic', 'pausing', checkpoint('half')));
  ledger.sandboxes.insert(row('id', 'resuming', checkpoint('whole')));
  ledger.sandboxes.insert(row('ie', 'running'));
  // Their manifests cannot be read at the moment.
  ledger.sandboxes.insert(row('if', 'paused', checkpoint('damaged')));
  ledger.sandboxes.insert(row('ig', 'resuming', checkpoint('damaged')));
  const report = await recover(options);
  assert.deepEqual([report.lost, report.paused, report.failures], [['ic', 'ie'], 5, []]);
  for (const id of ['ia', 'ib', 'id', 'if', 'ig']) {
    const record = ledger.sandboxes.get(id);
    const kept = ['if', 'ig'].includes(id) ? 'damaged' : 'whole';
    assert.deepEqual([record?.state, record?.volumeId, record?.checkpoint?.id], ['paused', undefined, kept], id);
    assert.ok(record?.pausedAt !== undefined && record.hostSecret !== '', id);
  }
  assert.equal(ledger.sandboxes.get('ic')?.endReason, 'daemon_crashed');
});

test('with VMs kept, a sandbox whose VM process lives is left as it is, with all that belongs to it', async () => {
  const ours = await plant('/opt/qemu/bin/qemu-system-x86_64', `socket,id=qmp,path=${options.vmDir}/ikept-x/qmp.sock`);
  const starting = await plant('/opt/qemu/bin/qemu-system-x86_64', `path=${options.vmDir}/inew-x/qmp.sock`);
  const vmOf = (id: string, process: { pid: number; startTime: number }) => ({
    ...{ kind: 'fake', incarnation: `${id}-x`, process, runDir: '', serialLog: '', memoryBase: '' },
  });
  const rowOf = (id: string, state: SandboxState, process = ours) =>
    row(id, state, { vm: vmOf(id, process) as NonNullable<SandboxRecord['vm']>, volumeId: id, netns: `/netns/${id}` });
  try {
    for (const made of [
      rowOf('ikept', 'running'),
      rowOf('inew', 'creating', starting),
      // The pid is another process by now.
      rowOf('igone', 'running', { ...ours, startTime: 1 }),
    ]) {
      ledger.sandboxes.insert(made);
      host.volumesOnDisk.add(made.sandboxId).add(`${made.sandboxId}-1`);
    }
    const serial = join(root, 'home', 'serial');
    for (const id of ['ikept', 'igone']) {
      await mkdir(join(options.vmDir, `${id}-x`), { recursive: true });
      await mkdir(serial, { recursive: true });
      await writeFile(join(serial, `${id}-x.log`), 'x');
    }
    let keptNetns: readonly string[] = [];
    const removeNetwork = async (keep: readonly string[]) => {
      keptNetns = keep;
      return 1;
    };
    const report = await recover({ ...options, keepVms: true, removeNetwork });
    assert.deepEqual([report.running, [...report.lost].sort(), report.processes], [['ikept'], ['igone', 'inew'], 1]);
    assert.deepEqual([await isAlive(ours), await isAlive(starting)], [true, false]);
    assert.deepEqual(keptNetns, ['/netns/ikept']);
    assert.deepEqual(
      [[...host.volumesOnDisk], await readdir(options.vmDir), await readdir(serial)],
      [['ikept', 'ikept-1'], ['ikept-x'], ['ikept-x.log']],
    );
    assert.equal(ledger.sandboxes.get('ikept')?.state, 'running');
  } finally {
    await Promise.all([ours, starting].map((process) => killAndWait(process)));
  }
});
