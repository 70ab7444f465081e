import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import test from 'node:test';
import { describePoolContract } from '../slots/testing/pool-contract.ts';
import { FakeSlotPool } from './slot-pool.ts';

describePoolContract('fake', async () => ({ pool: new FakeSlotPool({ capacity: 5 }), capacity: 5 }));

test('the address of a fake slot can be listened on and dialled', async () => {
  const pool = new FakeSlotPool();
  const slot = await pool.acquire({ internet: true });
  assert.match(slot.hostAddress, /^127\.77\.\d+\.\d+$/);
  const server = createServer((socket) => socket.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, slot.hostAddress, resolve));
  const bound = server.address();
  assert.ok(typeof bound === 'object' && bound !== null);
  const chunks: Buffer[] = [];
  for await (const chunk of connect(bound.port, slot.hostAddress)) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), 'hello');
  await new Promise((resolve) => server.close(resolve));
  await pool.close();
});

test('policies are recorded', async () => {
  const pool = new FakeSlotPool();
  const slot = await pool.acquire({ internet: true });
  await pool.setPolicy(slot, { internet: false });
  assert.deepEqual(pool.policyOf(slot), { internet: false });
  await pool.release(slot);
  assert.deepEqual(pool.events, [
    { kind: 'acquired', index: 1, policy: { internet: true } },
    { kind: 'policy', index: 1, policy: { internet: false } },
    { kind: 'released', index: 1 },
  ]);
});
