import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { envdOverTcp } from '../envd-client/envd-client.ts';
import { GuestLine } from '../envd-client/request.ts';
import { createCapturedGuests } from './captured-guests.ts';

test('a guest that was reached is stopped and let go on by the connection that it has; one that does not answer is left', async () => {
  const asked: string[] = [];
  let silent = false;
  const unheard = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push(`${request.url}${body.includes('"stay":true') ? ' stay' : ''} ${request.socket.remotePort}`);
    if (silent) unheard.resolve();
    else response.end(request.url === '/freeze' ? '{"frozen":true}' : '{"hooks":0}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const guests = createCapturedGuests((guest) => envdOverTcp(systemClock)({ ...guest, port }), silentLogger);
  const running = new AbortController();
  try {
    using line = new GuestLine();
    await guests.prepare('127.0.0.1', 'secret', line, running.signal);
    await guests.freeze('127.0.0.1', 'secret', line);
    await guests.unfreeze('127.0.0.1', 'secret', line);
    const [port = ''] = /\d+$/.exec(asked[0] ?? '') ?? [];
    // A call that comes late lets nothing go on that was stopped meanwhile.
    assert.deepEqual(asked, [`/unfreeze stay ${port}`, `/freeze ${port}`, `/unfreeze ${port}`]);
    silent = true;
    const reached = guests.prepare('127.0.0.1', 'secret', line, running.signal);
    await unheard.promise;
    running.abort(new Error('the VM has ended'));
    await reached;
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
