import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { findVmProcesses } from '@aenv/node/sandboxes/recovery/processes.ts';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

async function metric(daemon: TestDaemon, name: string): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

/** proc_pid_smaps_rollup(5), in MiB */
async function pssOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Math.round(Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1]) / 1024);
}

test('sandboxes that stood ready are as new ones: names, time, entropy; and nothing of them is left', async (t) => {
  await using daemon = await TestDaemon.start({ env: { AENV_WARM_LOW: '2', AENV_WARM_HIGH: '2' } });
  const ready = async () => (await metric(daemon, 'aenv_warm_sandboxes')) === 2;
  await until(ready, { timeoutMs: 180_000, what: 'two stand ready' });
  const costs = await Promise.all((await findVmProcesses(join(daemon.runtime, 'vm'))).map(({ pid }) => pssOf(pid)));
  assert.equal(costs.length, 2);
  t.diagnostic(`proportional set size of each that stands ready: ${costs.join(' and ')} MiB`);
  // They stand still: their clocks are behind by then.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const begin = performance.now();
  const sandboxes = [await createSandbox(daemon)];
  t.diagnostic(`create from a machine that stood ready: ${Math.round(performance.now() - begin)} ms`);
  sandboxes.push(await createSandbox(daemon));
  assert.equal(await metric(daemon, 'aenv_warm_takes_total\\{result="hit"\\}'), 2);
  const uuids = new Set<string>();
  for (const sandbox of sandboxes) {
    const asked = Date.now();
    const look =
      'hostname; echo $E2B_SANDBOX_ID; date +%s%3N; cat /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | od -An -tx1';
    const [host, id, clock, uuid = '', bytes = ''] = (await shell(sandbox, look)).split('\n');
    assert.deepEqual([host, id], [sandbox.sandboxId, sandbox.sandboxId]);
    assert.ok(Number(clock) > asked - 2000 && Number(clock) < Date.now() + 2000, `${Number(clock) - asked} ms ahead`);
    uuids.add(uuid).add(bytes);
  }
  assert.equal(uuids.size, 4);
  // One that stood ready is a sandbox in full: it can be paused and goes on.
  const [sandbox] = sandboxes;
  assert.ok(sandbox);
  await shell(sandbox, 'echo kept > /root/kept');
  assert.equal(await sandbox.pause(), true);
  await sandbox.connect();
  assert.equal(await shell(sandbox, 'cat /root/kept'), 'kept\n');
  assert.equal(await daemon.stop(), 0);
  assert.doesNotMatch(await daemon.log(), /could not be removed/);
});
