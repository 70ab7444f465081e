import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '@aenv/platform/process/run.ts';
import { StorageHost } from '../client/testing/fixture.ts';

// Clients that others have written: libnbd's tools, QEMU's, and fio's engine.
const SOAK = process.env.AENV_SOAK === '1';
const MIB = 1024 * 1024;
const SIZE = 256 * MIB;
const uid = process.getuid?.() ?? 0;

async function attached(host: StorageHost, id: string, layers: readonly string[] = []): Promise<string> {
  const disk = await host.store.create(id, { origin: { kind: 'layers', layers }, sizeBytes: SIZE });
  const source = await disk.attach(uid);
  assert.ok(source.kind === 'nbd');
  return source.socket;
}

const uri = (socket: string) => `nbd+unix:///?socket=${socket}`;

/** A process that ends with the test. */
async function running(argv: readonly [string, ...string[]]): Promise<ChildProcess & AsyncDisposable> {
  const [file, ...args] = argv;
  const child = spawn(file, args, { stdio: 'ignore' });
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  });
}

/** fio's verification: every block carries a checksum of itself, and all are read back at the end. */
function fioVerify(socket: string, seconds: number) {
  const job = ['--name=verify', '--ioengine=nbd', `--uri=${uri(socket)}`, '--rw=randrw', '--bsrange=4k-64k'];
  const check = [
    '--verify=crc32c',
    '--verify_fatal=1',
    '--verify_backlog=64',
    '--do_verify=1',
    '--norandommap=0',
    '--verify_state_save=0',
  ];
  const bounds = ['--size=256M', '--iodepth=16', `--runtime=${seconds}`, '--fsync=64', '--thread', '--randseed=7'];
  return run(['fio', ...job, ...check, ...bounds], { timeoutMs: 300_000 });
}

test('nbdinfo finds what is advertised, nbdcopy takes a sparse copy that is equal', async () => {
  await using host = await StorageHost.open();
  const base = await host.layer(SIZE, 8 * MIB);
  const socket = await attached(host, 'info', [base.path]);
  const { stdout } = await run(['nbdinfo', '--json', uri(socket)]);
  const { protocol, exports } = JSON.parse(stdout) as { protocol: string; exports: Record<string, unknown>[] };
  assert.equal(protocol, 'newstyle-fixed');
  const [found] = exports;
  for (const feature of ['can_flush', 'can_fua', 'can_trim', 'can_zero', 'can_fast_zero', 'can_multi_conn', 'can_df']) {
    assert.equal(found?.[feature], true, feature);
  }
  assert.deepEqual(found?.contexts, ['base:allocation']);
  assert.deepEqual([found?.block_size_minimum, found?.block_size_maximum], [512, 32 * MIB]);
  const map = await run(['nbdinfo', '--map', '--totals', uri(socket)]);
  assert.match(map.stdout, /^\s*8388608\s+3\.1%\s+0 data$/m);
  const copy = join(host.root, 'copy.raw');
  await run(['nbdcopy', uri(socket), copy]);
  const { stdout: blocks } = await run(['stat', '-c', '%b', copy]);
  assert.ok(Number(blocks) * 512 < 16 * MIB, 'holes stay holes');
  assert.ok((await readFile(copy)).subarray(0, 8 * MIB).equals(base.data));
});

test('QEMU writes, zeroes and discards through it, and compares equal', async () => {
  await using host = await StorageHost.open();
  const socket = await attached(host, 'qemu');
  const commands = [
    'write -P 7 0 1M',
    'write -z 64k 64k',
    'write -P 9 513 1000',
    'discard 256k 256k',
    'flush',
    'read -P 9 513 1000',
  ];
  await run(['qemu-io', '-f', 'raw', ...commands.flatMap((command) => ['-c', command]), uri(socket)]);
  const expected = Buffer.alloc(MIB, 7);
  expected.fill(0, 65_536, 131_072).fill(9, 513, 1513).fill(0, 262_144, 524_288);
  const raw = join(host.root, 'expected.raw');
  await writeFile(raw, expected);
  await run(['truncate', '-s', String(SIZE), raw]);
  const { stdout } = await run(['qemu-img', 'compare', '-f', 'raw', '-F', 'raw', raw, uri(socket)]);
  assert.match(stdout, /identical/);
  await run(['qemu-img', 'convert', '-n', '-f', 'raw', '-O', 'raw', raw, uri(socket)]);
  await run(['qemu-img', 'compare', '-f', 'raw', '-F', 'raw', raw, uri(socket)]);
});

test('fio finds every block as it wrote it', async () => {
  await using host = await StorageHost.open();
  await fioVerify(await attached(host, 'fio'), SOAK ? 60 : 4);
});

test('fio finds every block as it wrote it although the daemon is killed again and again: QEMU reconnects', async () => {
  await using host = await StorageHost.open({ daemon: { 'min-garbage-bytes': 32 * MIB, 'look-ms': 200 } });
  const socket = await attached(host, 'killed');
  // fio gives up at once when its server goes; QEMU's client, here between the two, does as it does for a VM.
  const proxy = join(host.root, 'proxy.sock');
  const upstream = `driver=nbd,server.type=unix,server.path=${socket},export=killed,reconnect-delay=30`;
  await using server = await running(['qemu-nbd', '-t', '-e', '4', '-k', proxy, '--image-opts', upstream]);
  while (server.exitCode === null && (await run(['test', '-S', proxy], { okCodes: [0, 1] })).code !== 0)
    await delay(20);
  let kills = 0;
  let done = false;
  const killer = (async () => {
    await delay(700);
    while (!done) {
      await host.killDaemon().catch(() => {});
      kills++;
      // QEMU tries again after 1, 2, 4, 8 … seconds: one that is never there long enough would be given up.
      while (!done && (await host.supervisor.call('stat', { disk: 'killed' })).connections === 0) await delay(50);
      await delay(700);
    }
  })();
  try {
    await fioVerify(proxy, SOAK ? 120 : 8);
  } finally {
    done = true;
    await killer;
  }
  assert.ok(kills >= 2, `${kills} kills`);
});
