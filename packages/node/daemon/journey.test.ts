import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { FakeSlotPool } from '@aenv/network/fake/slot-pool.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { createFakeDriver } from '@aenv/vmm/fake/driver.ts';
import { createFrontDoor } from '../front-door/front-door.ts';
import { envdOverTcp } from '../sandboxes/envd-client/envd-client.ts';
import { createBootVm, createRestoreVm } from '../sandboxes/launch/boot-vm.ts';
import { createLaunch } from '../sandboxes/launch/launch.ts';
import { SerialLogs } from '../sandboxes/launch/serial-logs.ts';
import { FakeHost } from '../sandboxes/testing/fake-host.ts';
import { CREATE, type Fixture, fixture } from '../sandboxes/testing/fixture.ts';

const [PORT, SLOTS, ATTEMPTS, HANG_MS] = [8080, 1, 3, 1_000];

/** Lifecycle, boot with retries, envd client and front door, with VMs that answer over TCP on the loopback device. */
async function node(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'aenv-journey-'));
  const driver = createFakeDriver();
  const slots = new FakeSlotPool({ capacity: SLOTS });
  const disks = new FakeHost();
  const serialLogs = new SerialLogs(join(root, 'serial'));
  const vmDir = join(root, 'vm');
  const launch = createLaunch({
    slots,
    volumes: disks.volumes,
    bootVm: createBootVm({ driver, vmDir, serialLogs, attempts: ATTEMPTS, timeoutMs: HANG_MS, log: silentLogger }),
    restoreVm: createRestoreVm({ driver, vmDir, serialLogs }),
    checkpoints: disks.checkpoints,
    startService: disks.startService,
    connectEnvd: envdOverTcp(systemClock),
    vmParts: disks.vmParts,
    boot: disks.boot,
    restoreLimits: disks.restoreLimits,
  });
  const f: Fixture = await fixture({ launch, serialLogs });
  const frontDoor = createFrontDoor({
    directory: f.sandboxes.routes,
    control: (_request, response) => response.writeHead(404).end(),
    log: silentLogger,
    metrics: silentMetrics,
    config: { retryDelaysMs: [] },
  });
  const { url } = await frontDoor.listen({ host: '127.0.0.1', port: 0 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(async () => {
    agent.destroy();
    await frontDoor.close();
    await f[Symbol.asyncDispose]();
    await driver.host.close();
    await rm(root, { recursive: true, force: true });
  });

  /** Over one kept connection, as a client behind a load balancer would. */
  const ask = (sandboxId: string, port = PORT, path = '/', onData?: () => void) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const headers = { 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': String(port) };
      get(url + path, { agent, headers }, async (response) => {
        try {
          let text = '';
          for await (const chunk of response) {
            text += chunk;
            onData?.();
          }
          resolve({ status: response.statusCode ?? 0, text });
        } catch (error) {
          reject(error);
        }
      }).on('error', reject);
    });
  const vmOf = (sandboxId: string) => driver.vm(f.ledger.sandboxes.get(sandboxId)?.incarnation ?? '');
  const held = async () => [
    ...driver.host.vms.keys(),
    ...disks.volumesOnDisk,
    ...(await readdir(vmDir).catch(() => [])),
    ...(slots.stats().inUse === 0 ? [] : ['slots']),
  ];
  return { ...f, driver, frontDoor, serialDir: join(root, 'serial'), ask, vmOf, held };
}

test('envd of a new sandbox has its token, its name and its secret when the create is answered', async (t) => {
  const { sandboxes, vmOf, ask } = await node(t);
  const view = await sandboxes.create({ ...CREATE, envVars: { A: '1' } });
  const { envd } = vmOf(view.sandboxId);
  assert.equal(envd.inits.length, 1);
  assert.equal(envd.inits[0]?.accessToken, view.envdAccessToken);
  assert.equal(envd.inits[0]?.envVars?.A, '1');
  const route = sandboxes.routes.lookup(view.sandboxId);
  assert.equal(envd.secret, route.kind === 'running' ? route.target.hostSecret : 'not running');
  assert.equal((await ask(view.sandboxId, 49983, '/health')).status, 204);
});

test('8 times another sandbox on the address of the one before: never its answers, never 502 once it is up', async (t) => {
  const { sandboxes, vmOf, ask, frontDoor, held } = await node(t);
  const addresses = new Set<string>();
  for (let round = 0; round < 8; round++) {
    const { sandboxId } = await sandboxes.create(CREATE);
    const vm = vmOf(sandboxId);
    addresses.add(vm.spec.network.hostAddress);
    await vm.serveHttp(PORT, (_request, response) => response.end(`answer ${round}`));
    for (let i = 0; i < 3; i++) assert.deepEqual(await ask(sandboxId), { status: 200, text: `answer ${round}` });
    await sandboxes.kill(sandboxId);
    const health = await ask(sandboxId, 49983, '/health');
    assert.equal(health.status, 502);
    assert.deepEqual([frontDoor.stats().sandboxSockets, frontDoor.stats().sandboxRequests], [0, 0]);
  }
  assert.equal(addresses.size, 1);
  assert.deepEqual(await held(), []);
});

test('an answer that streams when its sandbox is killed breaks; it does not end', async (t) => {
  const { sandboxes, vmOf, ask } = await node(t);
  const { sandboxId } = await sandboxes.create(CREATE);
  await vmOf(sandboxId).serveHttp(PORT, (_request, response) => void response.write('begun'));
  const begun = Promise.withResolvers<void>();
  const streaming = ask(sandboxId, PORT, '/', begun.resolve);
  streaming.catch(begun.reject);
  await begun.promise;
  await sandboxes.kill(sandboxId);
  await assert.rejects(streaming, { code: 'ECONNRESET' });
});

test('boots that hang or die are tried again under another incarnation, and leave nothing', async (t) => {
  const { sandboxes, driver, vmOf, held, serialDir } = await node(t);
  driver.setPlan(() => [{ kind: 'hang' }, { kind: 'die' }, { kind: 'ok' }][driver.host.started.length] as never);
  const { sandboxId } = await sandboxes.create(CREATE);
  const incarnations = driver.host.started.map((vm) => vm.record.incarnation);
  assert.equal(new Set(incarnations).size, 3);
  assert.equal(vmOf(sandboxId).record.incarnation, incarnations[2]);
  assert.deepEqual(await readdir(serialDir), [`${incarnations[2]}.log`]);
  await sandboxes.kill(sandboxId);
  assert.deepEqual(await held(), []);
  assert.deepEqual(await readdir(serialDir), []);
});

test('a guest that never comes up ends as boot_failed with its last words, and leaves only its last console', async (t) => {
  const { sandboxes, driver, held, serialDir } = await node(t);
  driver.setPlan(() => ({ kind: 'die', lastLine: 'Kernel panic - not syncing' }));
  await assert.rejects(sandboxes.create(CREATE), (error) => {
    assert.ok(error instanceof AenvError && error.code === 'boot_failed');
    assert.match(error.message, /attempt 3: it ended, last lines:\n.*\nKernel panic/);
    return true;
  });
  assert.equal(driver.host.started.length, ATTEMPTS);
  assert.deepEqual(await held(), []);
  assert.equal((await readdir(serialDir)).length, 1);
});

test('a VM that dies while it serves is lost, answers 502 and frees its slot', async (t) => {
  const { sandboxes, vmOf, ask, ledger, held } = await node(t);
  const { sandboxId } = await sandboxes.create(CREATE);
  await vmOf(sandboxId).die('Out of memory: Killed process 1');
  await sandboxes.routes.get(sandboxId)?.gone;
  assert.match(ledger.sandboxes.get(sandboxId)?.endMessage ?? '', /Out of memory/);
  assert.equal((await ask(sandboxId)).status, 502);
  assert.deepEqual(await held(), []);
  await sandboxes.create(CREATE);
});
