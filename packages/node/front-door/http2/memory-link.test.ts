import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { MemoryLink } from './memory-link.ts';

const ORIGIN = { remoteAddress: '192.0.2.1' };

test('bytes pass in both directions, in order, and the end of one direction leaves the other open', async () => {
  const [client, server] = MemoryLink.pair(ORIGIN);
  client.write('a');
  client.end('b');
  assert.equal(Buffer.concat(await server.toArray()).toString(), 'ab');
  server.end('answer');
  assert.equal(Buffer.concat(await client.toArray()).toString(), 'answer');
  assert.deepEqual([client.bytesRead, server.bytesRead, server.remoteAddress], [6, 2, '192.0.2.1']);
});

test('a side that does not read holds the other one back', async () => {
  const [client, server] = MemoryLink.pair(ORIGIN);
  let taken = 0;
  const chunk = Buffer.alloc(16 * 1024);
  const pour = () => client.write(chunk, () => ++taken < 1000 && pour());
  pour();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const stuck = taken;
  assert.ok(stuck * chunk.length <= 128 * 1024, `${stuck} chunks were taken`);
  server.resume();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(taken > stuck);
  client.destroy();
});

test('a side that is destroyed breaks the other one, unless all of it was sent', async () => {
  const [client, server] = MemoryLink.pair(ORIGIN);
  client.write('part');
  server.resume();
  client.destroy();
  const [error] = await once(server, 'error');
  assert.equal(error.code, 'ECONNRESET');

  const [other, peer] = MemoryLink.pair(ORIGIN);
  other.write('all');
  other.destroySoon();
  await once(other, 'close');
  assert.equal(Buffer.concat(await peer.toArray()).toString(), 'all');
  await assert.rejects(new Promise((resolve, reject) => peer.write('x', (e) => (e ? reject(e) : resolve(0)))), {
    code: 'ECONNRESET',
  });
});
