import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, to } from '../testing/clients.ts';
import { House } from '../testing/house.ts';

test('redirects of a server in the sandbox pass unfollowed', async () => {
  await using house = await House.open();
  const guest = await house.serve('ia', (request, response) => {
    response.writeHead(302, { Location: request.url === '/a' ? '/x' : 'http://127.0.0.1:1/' }).end();
  });
  const inside = await ask(`${house.url}/a`, { headers: to('ia', guest.port) });
  assert.equal(inside.status, 302);
  assert.equal(inside.headers.location, '/x');
  const outside = await ask(`${house.url}/b`, { headers: to('ia', guest.port) });
  assert.equal(outside.headers.location, 'http://127.0.0.1:1/');
});
