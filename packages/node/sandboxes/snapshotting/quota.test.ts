import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREATE, fixture } from '../testing/fixture.ts';

const MIB = 2 ** 20;

test('one snapshot more than there may be is refused before the guest stands still, with what to do', async () => {
  await using f = await fixture({ snapshotLimits: { max: 1 } });
  const sources = await Promise.all([f.sandboxes.create(CREATE), f.sandboxes.create(CREATE)]);
  const results = await Promise.allSettled(sources.map(({ sandboxId }) => f.sandboxes.snapshot(sandboxId)));
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected')?.reason;
  assert.deepEqual([refused?.code, refused?.status], ['capacity_exhausted', 503]);
  assert.match(String(refused), /there are 1 snapshots, and snapshots\.max is 1/);
  assert.match(refused?.remediation, /aenv snapshot rm/);
  assert.equal(f.host.reached.filter((point) => point === 'capture').length, 1);
  assert.equal(f.host.checkpointsOnDisk.size, 1);

  const kept = f.snapshots.list({ limit: 10 }).items[0];
  await f.snapshots.remove(kept?.templateId ?? '');
  await f.sandboxes.snapshot(sources[0]?.sandboxId ?? '');
});

test('what snapshots take is counted; a failed one gives its place back', async () => {
  await using f = await fixture({ snapshotLimits: { maxBytes: 10 * MIB } });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.privateBytes = 6 * MIB;
  f.host.hooks.set('capture', () => {
    throw new Error('as planned');
  });
  await assert.rejects(f.sandboxes.snapshot(sandboxId), /as planned/);
  f.host.hooks.clear();
  assert.equal((await f.sandboxes.snapshot(sandboxId)).bytes, 6 * MIB);
  await assert.rejects(f.sandboxes.snapshot(sandboxId), {
    code: 'capacity_exhausted',
    message: /snapshots take 6291456 bytes, and with up to 6291456 more .* snapshots\.max_bytes \(10485760\)/,
  });
  f.host.privateBytes = MIB;
  await f.sandboxes.snapshot(sandboxId);
});
