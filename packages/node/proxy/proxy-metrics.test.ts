import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { Labels, Metrics } from '@aenv/platform/observability/metrics.ts';
import { createFrontDoor } from '../front-door/front-door.ts';
import { ask, eventually, openSocket, to } from './testing/clients.ts';
import { FakeDirectory, freshAddress, httpGuest } from './testing/guests.ts';

test('requests are counted by how they came out and leave the gauges at zero', async () => {
  const series = new Map<string, number>();
  const key = (name: string, labels: Labels = {}) => [name, ...Object.values(labels)].join(' ');
  const metrics: Metrics = {
    counter: (name) => ({
      add: (value = 1, labels) => void series.set(key(name, labels), (series.get(key(name, labels)) ?? 0) + value),
    }),
    gauge: (name) => ({ set: (value, labels) => void series.set(key(name, labels), value), remove: () => {} }),
    histogram: () => ({ observe: () => {} }),
  };
  const directory = new FakeDirectory();
  const door = createFrontDoor({
    directory,
    control: (_, response) => void response.end(),
    log: silentLogger,
    metrics,
  });
  const address = freshAddress();
  const guest = await httpGuest(address, (request, response) => {
    if (request.url === '/wait') return;
    if (request.url === '/break')
      response.writeHead(200, { 'Content-Length': 10 }).write('x', () => response.destroy());
    else response.writeHead(Number(request.url?.slice(1))).end();
  });
  try {
    const { url } = await door.listen({ host: '127.0.0.1', port: 0 });
    directory.run('ia', address);
    for (const path of ['/200', '/204', '/404', '/503']) await ask(url + path, { headers: to('ia', guest.port) });
    await ask(url, { headers: to('inone', 80) });
    await ask(url);
    await assert.rejects(ask(`${url}/break`, { headers: to('ia', guest.port) }));
    const client = await openSocket(url);
    client.write(`GET /wait HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\n\r\n`);
    await eventually(() => series.get('aenv_proxy_open http') === 1, 'one open');
    assert.equal(series.get('aenv_http_connections'), 1);
    client.destroy();
    await eventually(() => series.get('aenv_proxy_open http') === 0, 'none open');
    const counted = [...series].filter(([name]) => name.startsWith('aenv_proxy_requests_total'));
    assert.deepEqual(Object.fromEntries(counted), {
      'aenv_proxy_requests_total 2xx': 2,
      'aenv_proxy_requests_total 4xx': 1,
      'aenv_proxy_requests_total 5xx': 1,
      'aenv_proxy_requests_total sandbox_gone': 1,
      'aenv_proxy_requests_total broken': 1,
      'aenv_proxy_requests_total client_gone': 1,
    });
  } finally {
    await door.close();
    await guest.close();
  }
});
