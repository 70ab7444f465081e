import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '@aenv/platform/process/identity.ts';
import { blockdFolders } from '../blockd/layout.ts';
import { findBlockd } from '../blockd/process/state.ts';
import { NbdClient } from '../nbd/testing/client.ts';
import { StorageHost } from './testing/fixture.ts';

const SOAK = process.env.AENV_SOAK === '1';
const MIB = 1024 * 1024;
const SIZE = 32 * MIB;
const EMPTY = { kind: 'layers', layers: [] } as const;
const uid = process.getuid?.() ?? 0;

/** The first tests share it: starting a daemon is dearer than what most of them do. */
let host: StorageHost;
before(async () => {
  host = await StorageHost.open();
});
after(() => host[Symbol.asyncDispose]());

/** Connects like a VMM: tries until the daemon is there again. */
async function reconnect(socket: string): Promise<NbdClient> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      return await NbdClient.connect(socket, { structured: true });
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(20);
    }
  }
}

test('kill -9 with writes in flight loses no acknowledged write, and the disk is served again by itself', async () => {
  const disk = await host.store.create('busy', { origin: EMPTY, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  const blocks = SIZE / 4096;
  /** what a block holds for sure, and what may have come over it */
  const acknowledged = new Uint32Array(blocks);
  const sent = new Uint32Array(blocks);
  let serial = 0;
  for (let round = 0; round < (SOAK ? 20 : 2); round++) {
    const client = await reconnect(source.socket);
    const end = Date.now() + 150 + randomInt(150);
    const writer = async (lane: number) => {
      for (;;) {
        const block = randomInt(blocks / 8) * 8 + lane;
        const stamp = ++serial;
        sent[block] = stamp;
        const data = Buffer.alloc(4096);
        data.writeUInt32LE(stamp, 0);
        data.writeUInt32LE(stamp, 4092);
        await client.write(block * 4096, data);
        acknowledged[block] = stamp;
        if (lane === 7 && serial % 50 === 0) await client.errno({ type: 3 });
      }
    };
    const writers = Array.from({ length: 8 }, (_, lane) => writer(lane).catch(() => {}));
    if (round === 1) await disk.snapshot('in-between');
    await delay(end - Date.now());
    await host.killDaemon();
    await Promise.all(writers);
  }
  assert.ok(serial > 100, `only ${serial} writes`);
  await using client = await reconnect(source.socket);
  const found = await client
    .read(0, SIZE / 2)
    .then(async (half) => Buffer.concat([half, await client.read(SIZE / 2, SIZE / 2)]));
  for (let block = 0; block < blocks; block++) {
    const stamp = found.readUInt32LE(block * 4096);
    const least = acknowledged[block] ?? 0;
    assert.ok(stamp >= least && stamp <= (sent[block] ?? 0), `block ${block} has ${stamp}, ${least} was acknowledged`);
    assert.equal(found.readUInt32LE(block * 4096 + 4092), stamp, 'no block is torn');
  }
  await disk.remove();
});

test('a node takes over the daemon, unless that is of another version; one that serves nothing ends with its node', async () => {
  const disk = await host.store.create('kept', { origin: EMPTY, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  const client = await NbdClient.connect(source.socket);
  await client.write(0, Buffer.alloc(4096, 5));
  const first = await host.supervisor.pid();
  await host.supervisor.close();
  assert.ok((await client.read(0, 4096)).equals(Buffer.alloc(4096, 5)), 'it serves on without a node');
  await host.reopenSupervisor();
  assert.equal(await host.supervisor.pid(), first);
  await host.supervisor.close();
  await host.reopenSupervisor('newer');
  assert.notEqual(await host.supervisor.pid(), first);
  await client.closed;
  {
    await using again = await NbdClient.connect(source.socket);
    assert.ok((await again.read(0, 4096)).equals(Buffer.alloc(4096, 5)), 'the socket is the same');
  }
  await disk.remove();
  const running = await findBlockd(blockdFolders(host.daemon.root, host.daemon.runtime).state);
  assert.ok(running);
  await host.supervisor.close();
  assert.equal(await isAlive(running.process), false);
  assert.deepEqual(await readdir(host.daemon.runtime), ['pending']);
});

test('what a dead daemon has left is no obstacle, only one has the disks, and one that does not answer is replaced', async () => {
  await using host = await StorageHost.open({ supervisor: { hungMs: 1_500 } });
  await host.killDaemon();
  const { disks } = await host.supervisor.call('list', {});
  assert.deepEqual(disks, []);
  const state = JSON.parse(await readFile(join(host.daemon.runtime, 'state.json'), 'utf8')) as { pid: number };
  assert.equal(await host.supervisor.pid(), state.pid);
  const { launchBlockd } = await import('./launch.ts');
  const second = { ...host.daemon, runtime: join(host.root, 'run', 'second') };
  await assert.rejects(launchBlockd(second, host.logFile), {
    code: 'block_daemon_failed',
    message: /another block daemon owns/,
  });
  const disk = await host.store.create('stuck', { origin: EMPTY, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  const before = await host.supervisor.pid();
  process.kill(before, 'SIGSTOP');
  assert.deepEqual((await host.supervisor.call('list', {})).disks, ['stuck']);
  assert.notEqual(await host.supervisor.pid(), before);
  await using client = await reconnect(source.socket);
  assert.equal((await client.read(0, 4096)).length, 4096);
  await disk.remove();
});

test('a daemon that cannot be started is told by name, and is there again when it can', async () => {
  await using host = await StorageHost.open({ supervisor: { patienceMs: 1_000 } });
  const records = join(host.daemon.root, 'disks');
  await mkdir(join(records, 'broken.json'));
  await host.killDaemon();
  await assert.rejects(host.supervisor.call('list', {}), { code: 'block_daemon_failed' });
  const told = /EISDIR/;
  const limit = Date.now() + 30_000;
  while (!told.test(await readFile(host.logFile, 'utf8'))) {
    assert.ok(Date.now() < limit, 'the log tells why');
    await delay(50);
  }
  await rm(join(records, 'broken.json'), { recursive: true });
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      assert.deepEqual((await host.supervisor.call('list', {})).disks, []);
      break;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
});
