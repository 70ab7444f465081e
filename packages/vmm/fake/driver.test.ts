import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { BOOT_ID_HEADER, HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { isAlive, killAndWait } from '@aenv/platform/process/identity.ts';
import { createFakeDriver } from './driver.ts';
import { fakeSpec } from './harness.ts';

let count = 1000;

async function setUp(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'fake-'));
  const driver = createFakeDriver();
  t.after(async () => {
    await driver.host.close();
    await rm(folder, { recursive: true });
  });
  const nextSpec = () => fakeSpec(folder, count++);
  const url = (spec: { network: { hostAddress: string } }, path: string, port = ENVD_PORT) =>
    `http://${spec.network.hostAddress}:${port}${path}`;
  return { driver, nextSpec, url };
}

const init = (url: string, secret: string | undefined, body: object) =>
  fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: secret === undefined ? {} : { [HOST_SECRET_HEADER]: secret },
  });

test('the first /init sets the host secret, later ones must bring it and may change it, and bodies are kept', async (t) => {
  const { driver, nextSpec, url } = await setUp(t);
  const spec = nextSpec();
  await driver.start(spec);
  const address = url(spec, '/init');
  assert.equal((await init(address, undefined, {})).status, 401);
  const first = await init(address, 'secret', { sandboxId: 'i1' });
  assert.equal(first.status, 204);
  assert.match(first.headers.get(BOOT_ID_HEADER) ?? '', /^[0-9a-f-]{36}$/);
  assert.equal((await init(address, 'wrong', {})).status, 401);
  assert.equal((await init(address, 'secret', { accessToken: null })).status, 204);
  const others = { hostSecret: 'another' };
  assert.equal((await init(address, 'secret', others)).status, 204);
  assert.equal((await init(address, 'secret', {})).status, 401);
  assert.equal((await init(address, 'another', {})).status, 204);
  assert.deepEqual(driver.vm(spec.incarnation).envd.inits, [{ sandboxId: 'i1' }, { accessToken: null }, others, {}]);
});

test('boots are slow, hang, die or are refused as planned', async (t) => {
  const { driver, nextSpec, url } = await setUp(t);
  const slow = nextSpec();
  driver.setPlan(() => ({ kind: 'ok', delayMs: 100 }));
  await driver.start(slow);
  await assert.rejects(fetch(url(slow, '/health')));
  await delay(150);
  assert.equal((await fetch(url(slow, '/health'))).status, 204);

  const hung = nextSpec();
  driver.setPlan(() => ({ kind: 'hang' }));
  await driver.start(hung);
  await assert.rejects(fetch(url(hung, '/health'), { signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' });

  driver.setPlan(() => ({ kind: 'die', afterMs: 20, lastLine: 'Kernel panic' }));
  const dying = await driver.start(nextSpec());
  const end = await dying.exited;
  assert.equal(end.reason, 'died');
  assert.match(end.lastLines, /Kernel panic/);

  driver.setPlan(() => ({ kind: 'refuse', message: 'no such drive' }));
  await assert.rejects(driver.start(nextSpec()), { code: 'boot_failed', message: /no such drive/ });
});

test('programs of the guest listen on outer ports and, through the tunnel, on loopback', async (t) => {
  const { driver, nextSpec, url } = await setUp(t);
  const spec = nextSpec();
  await driver.start(spec);
  const vm = driver.vm(spec.incarnation);
  await vm.serveHttp(8080, (_request, response) => response.end('outer'));
  assert.equal(await (await fetch(url(spec, '/', 8080))).text(), 'outer');
  await vm.unserve(8080);
  await assert.rejects(fetch(url(spec, '/', 8080)));

  vm.envd.loopback.set(9000, (stream) => stream.on('data', (data) => stream.end(`echo ${data}`)));
  await init(url(spec, '/init'), 'secret', {});
  assert.equal(await tunnel(spec.network.hostAddress, 9000, 'wrong'), '401');
  assert.equal(await tunnel(spec.network.hostAddress, 9001, 'secret'), '502');
  assert.equal(await tunnel(spec.network.hostAddress, 9000, 'secret'), 'echo hello');
});

function tunnel(host: string, port: number, secret: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request({
    host,
    port: ENVD_PORT,
    method: 'CONNECT',
    path: `127.0.0.1:${port}`,
    headers: { [HOST_SECRET_HEADER]: secret },
  });
  asked.on('connect', (response, socket) => {
    if (response.statusCode !== 200) return resolve(String(response.statusCode));
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('end', () => resolve(text));
    socket.write('hello');
  });
  asked.on('error', reject);
  asked.end();
  return promise;
}

test('a pause stops a body in its middle, and resume goes on with the next byte', async (t) => {
  const { driver, nextSpec, url } = await setUp(t);
  const spec = nextSpec();
  const vm = await driver.start(spec);
  await driver.vm(spec.incarnation).serveHttp(8080, async (_request, response) => {
    for (let i = 0; i < 5; i++) {
      response.write(`${i}`);
      await delay(30);
    }
    response.end();
  });
  const response = await fetch(url(spec, '/', 8080));
  await vm.pause();
  const reading = response.text();
  assert.equal(await Promise.race([reading, delay(400, 'silent')]), 'silent');
  await vm.resume();
  assert.equal(await reading, '01234');
});

test('stop ends every connection, and the serial log stays', async (t) => {
  const { driver, nextSpec } = await setUp(t);
  const spec = nextSpec();
  const vm = await driver.start(spec);
  const sockets = [1, 2, 3].map(() => createConnection(ENVD_PORT, spec.network.hostAddress));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  const closed = sockets.map((socket) => new Promise((resolve) => socket.on('error', () => {}).once('close', resolve)));
  await vm.pause();
  await vm.stop();
  await Promise.all(closed);
  assert.match(await readFile(spec.serialLog, 'utf8'), /booting/);
});

test('nothing that is done to the identity of a fake VM reaches a process', async (t) => {
  const { driver, nextSpec } = await setUp(t);
  const vm = await driver.start(nextSpec());
  assert.equal(await isAlive(vm.record.process), false);
  assert.equal(await killAndWait(vm.record.process), true);
});
