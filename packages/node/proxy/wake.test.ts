import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ask, eventually, openSocket, to } from './testing/clients.ts';
import { House } from './testing/house.ts';

/** A sandbox that sleeps until it is let wake, and counts how often that was asked for. */
async function sleeping(house: House, listener: (request: IncomingMessage, response: ServerResponse) => void) {
  const guest = await house.serve('ia', listener);
  const rested = Promise.withResolvers<void>();
  let asked = 0;
  house.directory.sleep('ia', async () => {
    asked++;
    await rested.promise;
    house.directory.run('ia', guest.address);
  });
  return { guest, letWake: rested.resolve, asked: () => asked };
}

test('a request waits for the sandbox to wake, and its body arrives whole', async () => {
  await using house = await House.open();
  const { guest, letWake, asked } = await sleeping(house, (request, response) => void request.pipe(response));
  const body = Buffer.alloc(300_000, 'x');
  const answers = [1, 2].map(() => ask(house.url, { method: 'POST', body, headers: to('ia', guest.port) }));
  await eventually(() => asked() === 2, 'both wait');
  letWake();
  for (const answer of await Promise.all(answers)) assert.ok(answer.status === 200 && answer.body.equals(body));
});

test('a client that goes away while the sandbox wakes is forgotten, and the sandbox never hears of it', async () => {
  await using house = await House.open();
  const { guest, letWake, asked } = await sleeping(house, (_request, response) => void response.end('ok'));
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  const length = 'Content-Length: 10\r\n';
  const ways = [
    ...['', length].flatMap((more) => [[more, 'destroy'] as const, [more, 'resetAndDestroy'] as const]),
    [upgrade, 'resetAndDestroy'] as const,
  ];
  for (const [at, [more, leave]] of ways.entries()) {
    const socket = await openSocket(house.url);
    socket.write(`POST / HTTP/1.1\r\nHost: ${guest.port}-ia.x\r\n${more}\r\n`);
    await eventually(() => asked() === at + 1, 'it waits');
    socket[leave]();
    await once(socket, 'close');
  }
  await eventually(() => house.door.stats().clients === 0, 'all have gone');
  letWake();
  assert.equal((await ask(`${house.url}/x`, { headers: to('ia', guest.port) })).body.toString(), 'ok');
  assert.equal(guest.accepted(), 1);
  await eventually(() => house.door.stats().sandboxRequests === 0, 'nothing is under way');
});

test('a sandbox that is deleted while it wakes answers as one that is not there', async () => {
  await using house = await House.open();
  for (const failure of [undefined, new AenvError('sandbox_not_running', 'it was deleted while it started')]) {
    house.directory.sleep('ia', async () => {
      house.directory.end('ia');
      if (failure !== undefined) throw failure;
    });
    const { status, json } = await ask(house.url, { headers: to('ia', 8000) });
    assert.deepEqual([status, json().code], [502, 502]);
  }
});

test('a sandbox that does not wake says why, and one that is private is woken for those that may come in only', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (_request, response) => void response.end('in'));
  let asked = 0;
  const wake = async () => {
    if (++asked === 1) throw new AenvError('capacity_exhausted', 'no memory is left');
    house.directory.run('ia', guest.address, { trafficAccessToken: 'token' });
  };
  house.directory.sleep('ia', wake, 'token');
  const headers = to('ia', guest.port);
  assert.equal((await ask(house.url, { headers })).status, 403);
  assert.equal((await ask(house.url, { headers: { ...headers, 'e2b-traffic-access-token': 'other' } })).status, 403);
  assert.equal(asked, 0);
  const mine = { ...headers, 'e2b-traffic-access-token': 'token' };
  const refused = await ask(house.url, { headers: mine });
  assert.deepEqual([refused.json().message, asked], ['no memory is left', 1]);
  assert.equal((await ask(house.url, { headers: mine })).body.toString(), 'in');
});
