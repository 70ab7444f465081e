import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '@aenv/platform/process/run.ts';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { guestFio } from '../harness/guest-fio.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';
const MIB = 1024 * 1024;

let daemon: TestDaemon;
before(async () => {
  daemon = await TestDaemon.start();
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

async function blockDaemon(): Promise<number> {
  const state = await readFile(join(daemon.runtime, 'blockd', 'state.json'), 'utf8');
  return (JSON.parse(state) as { pid: number }).pid;
}

/** Kills the block daemon and waits until another one is there. */
async function killBlockDaemon(): Promise<void> {
  const before = await blockDaemon();
  process.kill(before, 'SIGKILL');
  await until(async () => (await blockDaemon()) !== before, { timeoutMs: 30_000, what: 'another block daemon' });
}

/** Writes files, each synced, and prints the number of each one that is; its content follows from the number. */
const WRITER = `
import os, hashlib, sys, time
end = time.time() + float(sys.argv[1])
n = 0
while time.time() < end:
    n += 1
    data = hashlib.sha256(str(n).encode()).digest() * 512
    fd = os.open(f"/root/load/{n}", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, data); os.fsync(fd); os.close(fd)
    print(n, flush=True)
`;
const READER = `
import hashlib, sys
bad = [n for n in range(1, int(sys.argv[1]) + 1) if open(f"/root/load/{n}", "rb").read() != hashlib.sha256(str(n).encode()).digest() * 512]
print("bad", bad)
`;

/** Writes at random past the page cache; every block has a checksum of itself, which is compared a little later. */
const FIO = [
  ...['--name=verify', '--filename=/root/fio', '--size=256M', '--fallocate=none', '--rw=randwrite', '--bsrange=4k-64k'],
  ...['--ioengine=libaio', '--iodepth=8', '--direct=1', '--fsync=32', '--thread', '--output-format=json'],
  ...['--verify=crc32c', '--verify_fatal=1', '--verify_backlog=32', '--do_verify=1', '--verify_state_save=0'],
];

/** What fio says of its one job. */
interface FioReport {
  readonly jobs: readonly {
    readonly error: number;
    readonly read: { readonly total_ios: number };
    readonly write: { readonly total_ios: number };
  }[];
}

test('the block daemon is killed again and again under a busy sandbox: nothing that was synced is lost, no error is seen', async () => {
  await using sandbox = await createSandbox(daemon);
  await shell(sandbox, 'mkdir -p /root/load');
  await sandbox.files.write('/root/writer.py', WRITER, { user: 'root' });
  await sandbox.files.write('/root/reader.py', READER, { user: 'root' });
  const fio = await guestFio();
  await sandbox.files.write('/root/fio.tgz', new Uint8Array(fio.archive).buffer, { user: 'root' });
  await shell(sandbox, 'tar -xzf /root/fio.tgz -C / && rm /root/fio.tgz');
  let last = 0;
  const seconds = SOAK ? 120 : 20;
  const verifying = sandbox.commands.run(`${fio.command} ${FIO.join(' ')} --runtime=${seconds}`, {
    user: 'root',
    timeoutMs: 600_000,
  });
  const writing = sandbox.commands.run(`python3 /root/writer.py ${seconds}`, {
    user: 'root',
    timeoutMs: 600_000,
    onStdout: (text) => {
      for (const line of text.trim().split('\n')) last = Number(line);
    },
  });
  const end = Date.now() + seconds * 1000;
  let kills = 0;
  while (Date.now() < end - 5_000) {
    await delay(500);
    await killBlockDaemon();
    kills++;
    const before = last;
    // QEMU tries again after 1, 2, 4, 8 … seconds: a daemon that is never there long enough would be given up.
    await until(() => last > before + 1 || Date.now() > end - 5_000, { timeoutMs: 60_000, what: 'writes go on' });
  }
  assert.equal((await writing).exitCode, 0);
  const { stdout } = await verifying;
  const [job] = (JSON.parse(stdout.slice(stdout.indexOf('{'))) as FioReport).jobs;
  assert.ok(job?.error === 0 && job.write.total_ios > 100 && job.read.total_ios > 50, stdout);
  console.log(`# fio: ${job.write.total_ios} writes, ${job.read.total_ios} blocks verified, ${kills} kills`);
  assert.ok(kills >= 2 && last > 10, `${kills} kills, ${last} files`);
  await shell(sandbox, 'sync; echo 3 > /proc/sys/vm/drop_caches');
  assert.equal(await shell(sandbox, `python3 /root/reader.py ${last}`), 'bad []\n');
  assert.equal(await shell(sandbox, 'dmesg | grep -iE "i/o error|ext4-fs error|remounting" || echo none'), 'none\n');
});

test('the node crashes and comes back while the block daemon lives: it is taken over', async () => {
  const sandbox = await createSandbox(daemon);
  const before = await blockDaemon();
  await daemon.crash();
  process.kill(before, 0);
  await daemon.launch();
  assert.equal(await blockDaemon(), before);
  await assert.rejects(sandbox.commands.run('true'));
  assert.doesNotMatch(await shell(await createSandbox(daemon), 'echo alive'), /error/);
});

test('a second sandbox of a template adds less than 1 MiB on disk and no page of the layers', async () => {
  const used = async () => Number((await run(['du', '-s', '-B1', join(daemon.home, 'volumes')])).stdout.split('\t')[0]);
  const cached = async () => {
    const { stdout } = await run(['fincore', '--bytes', '--noheadings', '--output=res', ...layers]);
    return stdout.split('\n').reduce((sum, line) => sum + Number(line), 0);
  };
  await using first = await createSandbox(daemon);
  await first.commands.run('true');
  const layers = await templateLayers();
  const [usedBefore, cachedBefore] = [await used(), await cached()];
  await using second = await createSandbox(daemon);
  await second.commands.run('true');
  const [usedAfter, cachedAfter] = [await used(), await cached()];
  const share = (cachedAfter - cachedBefore) / cachedBefore;
  console.log(
    `# second sandbox: ${((usedAfter - usedBefore) / 1024).toFixed(0)} KiB on disk, ${(share * 100).toFixed(2)} % of the layers' page cache`,
  );
  assert.ok(cachedBefore > 8 * MIB, 'the guest has read from the layers');
  assert.ok(usedAfter - usedBefore < MIB, `${usedAfter - usedBefore} bytes on disk`);
  assert.ok(share < 0.05, `${share * 100} % of the page cache`);
});

test('the disks are in the metrics', async () => {
  await using sandbox = await createSandbox(daemon);
  await shell(sandbox, 'dd if=/dev/zero of=/root/x bs=1M count=4 conv=fsync');
  await until(
    async () => {
      const text = await (await fetch(`${daemon.url}/metrics`)).text();
      const value = (name: string) =>
        Number(new RegExp(`^${name.replaceAll(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec(text)?.[1]);
      return (
        value('aenv_block_disks{state="attached"}') >= 1 &&
        value('aenv_block_bytes_total{kind="write"}') > 0 &&
        value('aenv_block_requests_total{kind="flush"}') > 0 &&
        value('aenv_block_daemon_restarts_total') >= 0
      );
    },
    { timeoutMs: 30_000, what: 'the counters are there' },
  );
});

/** Files of the layers of `base`, as the one disk that stands on them has them. */
async function templateLayers(): Promise<readonly string[]> {
  const folder = join(daemon.home, 'volumes', 'disks');
  const [name] = await readdir(folder);
  const record = JSON.parse(await readFile(join(folder, name ?? ''), 'utf8')) as { layers: { path: string }[] };
  return record.layers.map(({ path }) => path);
}
