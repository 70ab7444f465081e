import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { envdOverTcp, TIME_LATE_MS } from './envd-client.ts';
import { GuestLine } from './request.ts';

const BOOT_ID = '0c8f31a5-5d1c-4f0e-9d0e-2f6f0a4ce7a1';

async function listen(handler: RequestListener, port = 0): Promise<{ server: Server; port: number }> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

const client = (port: number) => envdOverTcp(systemClock)({ address: '127.0.0.1', port });
const limit = (ms: number) => AbortSignal.timeout(ms);

test('waits until envd listens and is healthy, with a new connection for each question', async () => {
  const { server: placeholder, port } = await listen(() => {});
  await new Promise((resolve) => placeholder.close(resolve));
  let kernelUp = 0;
  const waiting = client(port).waitHealthy(limit(5_000), () => kernelUp++);
  await systemClock.sleep(30);
  const sockets = new Set<unknown>();
  let questions = 0;
  const { server } = await listen((request, response) => {
    sockets.add(request.socket);
    assert.equal(request.url, '/health');
    response.writeHead(++questions < 3 ? 503 : 204).end();
  }, port);
  try {
    await waiting;
    assert.equal(questions, 3);
    assert.equal(kernelUp, 1);
    assert.equal(sockets.size, 3);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('stops waiting when the signal aborts, with its reason', async () => {
  const { server, port } = await listen(() => {});
  try {
    await assert.rejects(client(port).waitHealthy(AbortSignal.timeout(50)), { name: 'TimeoutError' });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('calls on a line share a connection, also after one was broken, and it is closed with the line', async () => {
  let calls = 0;
  const ports: (number | undefined)[] = [];
  const closed = Promise.withResolvers<void>();
  let open = 0;
  const { server, port } = await listen((request, response) => {
    ports.push(request.socket.remotePort);
    request.resume();
    if (++calls === 2) request.socket.destroy();
    else if (request.url === '/init') response.writeHead(204, { 'x-envd-version': '0.6.13' }).end();
    else response.end('{"hooks":2}');
  });
  server.on('connection', (socket) => {
    open++;
    socket.once('close', () => --open === 0 && calls === 4 && closed.resolve());
  });
  const line = new GuestLine();
  try {
    const envd = envdOverTcp(systemClock)({ address: '127.0.0.1', port, line });
    await envd.init({}, ['secret'], limit(5_000));
    assert.equal(await envd.unfreeze('secret', { event: 'fork' }, limit(5_000)), 2);
    assert.equal(await envd.unfreeze('secret', { event: 'fork' }, limit(5_000)), 2);
    // The second call came on the first connection, which was broken; the third and the fourth share another one.
    assert.deepEqual([ports.length, ports[1], ports[3]], [4, ports[0], ports[2]]);
    assert.notEqual(ports[2], ports[0]);
    assert.equal(open, 1);
    line[Symbol.dispose]();
    await closed.promise;
  } finally {
    line[Symbol.dispose]();
    server.close();
  }
});

test('init sends the secret and the data, repeats broken and busy answers, returns the boot id', async () => {
  let calls = 0;
  const { server, port } = await listen(async (request, response) => {
    calls++;
    if (calls === 1) return request.socket.destroy();
    if (calls === 2) return response.writeHead(503).end();
    assert.equal(request.headers['x-aenv-host-secret'], 'secret');
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text);
    assert.equal(body.defaultUser, 'user');
    assert.ok(Math.abs(Date.parse(body.timestamp) - Date.now()) < 5_000);
    response.writeHead(204, { 'x-aenv-boot-id': BOOT_ID, 'x-envd-version': '0.6.13' }).end();
  });
  try {
    const answer = await client(port).init({ defaultUser: 'user' }, ['secret'], limit(5_000));
    assert.deepEqual(answer, { bootId: BOOT_ID, envdVersion: '0.6.13', steps: {} });
    assert.equal(calls, 3);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a refusal, a bad boot id and an endless answer are errors, not retries without end', async () => {
  const answers: RequestListener[] = [
    (_request, response) => response.writeHead(401).end('no'),
    (_request, response) => response.writeHead(204, { 'x-aenv-boot-id': 'x', 'x-envd-version': '0.6.13' }).end(),
    (_request, response) => response.writeHead(204, { 'x-aenv-boot-id': BOOT_ID, 'x-envd-version': 'new' }).end(),
  ];
  let handler: RequestListener = () => {};
  const { server, port } = await listen((request, response) => handler(request, response));
  try {
    for (handler of answers) {
      await assert.rejects(
        client(port).init({}, ['secret'], limit(5_000)),
        (error) => error instanceof AenvError && error.code === 'boot_failed',
      );
    }
    handler = (_request, response) => response.writeHead(200).end(Buffer.alloc(1024 * 1024));
    await assert.rejects(client(port).init({}, ['secret'], limit(100)), { name: 'TimeoutError' });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a guest whose secret was changed by a call with a lost answer is asked with the new one', async () => {
  const given: (string | string[] | undefined)[] = [];
  const { server, port } = await listen((request, response) => {
    const secret = request.headers['x-aenv-host-secret'];
    given.push(secret);
    if (given.length === 1) request.socket.destroy();
    else if (secret === 'old') response.writeHead(401).end();
    else response.writeHead(204, { 'x-aenv-boot-id': BOOT_ID, 'x-envd-version': '0.5.7' }).end();
  });
  try {
    await client(port).init({ hostSecret: 'new' }, ['old', 'new'], limit(5_000));
    assert.deepEqual(given, ['old', 'old', 'new']);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a guest that does not write its files to its disk is told as a capture that failed', async () => {
  const answers: RequestListener[] = [
    (request, response) => {
      assert.deepEqual([request.method, request.url], ['POST', '/sync']);
      response.writeHead(request.headers['x-aenv-host-secret'] === 'secret' ? 204 : 401).end();
    },
    (_request, response) => response.writeHead(404).end('no route'),
    (request) => request.socket.destroy(),
  ];
  let handler: RequestListener = () => {};
  const { server, port } = await listen((request, response) => handler(request, response));
  try {
    const [good, ...bad] = answers;
    if (good !== undefined) handler = good;
    await client(port).sync('secret', limit(5_000));
    for (handler of bad) {
      await assert.rejects(client(port).sync('secret', limit(5_000)), { code: 'capture_failed' });
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a guest that may have heard the time late is told again before its programs go on', async () => {
  const told: [path: string | undefined, late: number, stay: unknown][] = [];
  const begin = Date.now();
  let time = begin;
  let slow = 2;
  const { server, port } = await listen(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { timestamp, stay } = JSON.parse(text) as { timestamp: string; stay?: boolean };
    told.push([request.url, Date.parse(timestamp) - begin, stay]);
    if (slow-- > 0) time += TIME_LATE_MS + 1;
    if (request.url === '/init') response.writeHead(204, { 'x-envd-version': '0.5.7' }).end();
    else response.writeHead(200).end(JSON.stringify({ hooks: told.length }));
  });
  const first = TIME_LATE_MS + 1;
  const envd = envdOverTcp({ ...systemClock, now: () => time })({ address: '127.0.0.1', port });
  try {
    await envd.init({ event: 'fork' }, ['secret'], limit(5_000));
    assert.deepEqual(told.splice(0), [
      ['/init', 0, undefined],
      ['/unfreeze', first, true],
      ['/unfreeze', 2 * first, true],
    ]);
    slow = 1;
    assert.equal(await envd.unfreeze('secret', { event: 'fork' }, limit(5_000)), 1, 'it knows the time already');
    assert.deepEqual(told.splice(0), [['/unfreeze', 2 * first, undefined]]);
    slow = 1;
    assert.equal(await envd.unfreeze('secret', {}, limit(5_000)), 2, 'it has heard nothing before');
    assert.deepEqual(told.splice(0), [
      ['/unfreeze', 3 * first, undefined],
      ['/unfreeze', 4 * first, undefined],
    ]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('what the guest did between the call and its answer does not make the time late; it tells its hooks', async () => {
  let time = 0;
  let guest = '';
  const paths: (string | undefined)[] = [];
  const { server, port } = await listen((request, response) => {
    paths.push(request.url);
    request.resume();
    if (request.url !== '/init') return response.end('{"hooks":0}');
    time += 3 * TIME_LATE_MS;
    response.writeHead(204, {
      'x-envd-version': '0.5.7',
      'x-aenv-hooks': guest === '' ? '65' : '2',
      'server-timing': guest,
    });
    return response.end();
  });
  const envd = envdOverTcp({ ...systemClock, now: () => time })({ address: '127.0.0.1', port });
  const init = () => envd.init({ event: 'fork', letGo: true }, ['secret'], limit(5_000));
  try {
    await assert.rejects(init(), { code: 'restore_failed' }, 'more hooks than there can be');
    guest = `guest;dur=${2 * TIME_LATE_MS}`;
    assert.equal((await init()).hooks, 2);
    assert.deepEqual(paths.splice(0), ['/init', '/init']);
    guest = `guest;dur=${2 * TIME_LATE_MS - 1}`;
    await init();
    assert.deepEqual(paths, ['/init', '/unfreeze']);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('steps around a capture are asked with the secret; what a guest answers is bounded', async () => {
  let answer: unknown = { frozen: true };
  const asked: unknown[] = [];
  const { server, port } = await listen(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    asked.push([request.url, request.headers['x-aenv-host-secret'], text === '' ? undefined : JSON.parse(text)]);
    if (answer === undefined) response.writeHead(404).end();
    else response.writeHead(200).end(JSON.stringify(answer));
  });
  const hook = { name: '10-x', ok: true, status: 'exit status 0', ms: 5, output: '' };
  const run = () => client(port).runHooks('secret', { event: 'fork', timeoutMs: 1_000 }, limit(5_000));
  try {
    assert.equal(await client(port).freeze('secret', limit(5_000)), true);
    answer = { hooks: 2 };
    assert.equal(await client(port).unfreeze('secret', { event: 'fork' }, limit(5_000)), 2);
    answer = undefined;
    assert.equal(await client(port).unfreeze('secret', {}, limit(5_000)), 0, 'a guest from before there were any');
    answer = { hooks: [hook] };
    assert.deepEqual(await run(), [hook]);
    for (answer of [
      {},
      { hooks: 3 },
      { hooks: [{ ...hook, output: 'x'.repeat(5_000) }] },
      { hooks: Array(65).fill(hook) },
    ]) {
      await assert.rejects(run(), { code: 'restore_failed' });
    }
    const [frozen, unfrozen] = asked as [string, string, { event?: string; timestamp?: string } | undefined][];
    assert.deepEqual(frozen, ['/freeze', 'secret', undefined]);
    assert.deepEqual([unfrozen?.[0], unfrozen?.[1], unfrozen?.[2]?.event], ['/unfreeze', 'secret', 'fork']);
    assert.ok(Math.abs(Date.parse(unfrozen?.[2]?.timestamp ?? '') - Date.now()) < 5_000);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
