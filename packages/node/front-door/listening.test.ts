import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { ask, eventually, openSocket, readToEnd } from '../proxy/testing/clients.ts';
import { FakeDirectory, freshAddress, rawGuest } from '../proxy/testing/guests.ts';
import { House } from '../proxy/testing/house.ts';
import { createFrontDoor } from './front-door.ts';

test('listening where somebody listens already is port_in_use, where this host has no address config_invalid', async () => {
  await using house = await House.open();
  const port = Number(new URL(house.url).port);
  const other = createFrontDoor({
    directory: new FakeDirectory(),
    control: (_request, response) => void response.end(),
    log: silentLogger,
    metrics: silentMetrics,
  });
  await assert.rejects(other.listen({ host: '127.0.0.1', port }), { code: 'port_in_use' });
  await assert.rejects(other.listen({ host: '203.0.113.77', port: 0 }), { code: 'config_invalid' });
  const { url } = await other.listen({ host: '::1', port: 0 });
  assert.match(url, /^http:\/\/\[::1\]:\d+$/);
  await other.close();
});

test('closing lets short requests finish, breaks streams, refuses new ones and leaves nothing', async () => {
  await using house = await House.open({ closeGraceMs: 400 }, (request, response) => {
    if (request.url === '/short') setTimeout(() => response.end('finished'), 150);
    else response.end('quick');
  });
  const guest = await house.serve('ia', (_request, response) => void response.write('stream'));
  const idle = await openSocket(house.url);
  const idleEnd = readToEnd(idle);
  idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  const stream = await openSocket(house.url);
  stream.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\n\r\n`);
  const streamEnd = readToEnd(stream);
  await once(stream, 'data');
  const short = ask(`${house.url}/short`);
  await eventually(() => house.door.stats().clients === 3, 'three clients');

  const began = performance.now();
  const closed = house.door.close();
  assert.equal((await idleEnd).end, 'fin', 'idle connections go at once');
  await assert.rejects(ask(house.url), { code: 'ECONNREFUSED' });
  assert.equal((await short).body.toString(), 'finished');
  assert.equal((await streamEnd).end, 'ECONNRESET');
  await closed;
  const took = performance.now() - began;
  assert.ok(took > 300 && took < 5_000, `${took} ms`);
  assert.deepEqual(house.door.stats(), { clients: 0, sandboxSockets: 0, sandboxRequests: 0 });
  assert.equal(house.directory.subscribers, 0);
});

test('closing does not wait when nothing but upgraded connections is left', async () => {
  await using house = await House.open({ closeGraceMs: 30_000 });
  const address = freshAddress();
  const guest = await house.keep(
    rawGuest(address, (socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'));
    }),
  );
  house.directory.run('ia', address);
  const upgraded = await openSocket(house.url);
  upgraded.write(`GET / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  await once(upgraded, 'data');
  const ended = readToEnd(upgraded);
  const began = performance.now();
  await house.door.close();
  assert.equal((await ended).end, 'ECONNRESET');
  assert.ok(performance.now() - began < 2_000);
});
