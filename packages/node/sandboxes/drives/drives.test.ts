import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CREATE, fixture } from '../testing/fixture.ts';
import type { DriveStart } from './contract.ts';

const start = (number: number, more: object = {}): DriveStart => ({
  drive: {
    ...{ driveId: `d${number}`, label: `aenv-drive-${number}`, mountPath: `/mnt/d${number}`, readOnly: true },
    ...{ sizeMb: 64, ...more },
  },
  disk: { kind: 'layers', layers: ['/drive.layer'] },
});
const drives = [start(1), start(2, { readOnly: false, subPath: 'a' })];
const COLD = { ...CREATE, cold: true, drives };
const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('drives have volumes of their own, the guest is told of them when it boots, and they go with the sandbox', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(COLD);
  assert.deepEqual([...f.host.volumesOnDisk].sort(), [sandboxId, `${sandboxId}-1`, `${sandboxId}-2`]);
  assert.deepEqual(f.host.inits[0]?.drives, [
    { label: 'aenv-drive-1', mountPath: '/mnt/d1', readOnly: true },
    { label: 'aenv-drive-2', mountPath: '/mnt/d2', readOnly: false, subPath: 'a' },
  ]);
  const [vm] = f.host.shapes;
  assert.deepEqual(
    vm?.drives.map(({ name, source }) => [name, source.readOnly]),
    [
      ['root', false],
      ['tools', true],
      ['aenv-drive-1', true],
      ['aenv-drive-2', false],
    ],
  );
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.drives.length, 2);
  await f.sandboxes.kill(sandboxId);
  assert.deepEqual(f.host.inventory(), []);
});

test('a paused sandbox and its forks have the drives again, without their guests being told', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(COLD);
  const [fork] = await f.sandboxes.fork(sandboxId, { count: 1, timeoutSeconds: 60 });
  assert.ok(fork !== undefined && 'view' in fork);
  const child = fork.view.sandboxId;
  assert.equal(f.host.volumesOnDisk.size, 6);
  assert.deepEqual(f.ledger.sandboxes.get(child)?.drives, f.ledger.sandboxes.get(sandboxId)?.drives);
  await f.sandboxes.kill(child);
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.equal(f.host.volumesOnDisk.size, 0);
  await f.sandboxes.resume(sandboxId, 60);
  assert.deepEqual([...f.host.volumesOnDisk].sort(), [sandboxId, `${sandboxId}-1`, `${sandboxId}-2`]);
  assert.equal(f.host.shapes.at(-1)?.drives.length, 4);
  assert.equal(f.host.inits.filter((init) => init.drives !== undefined).length, 1);
});

test('a drive that cannot be made or mounted leaves nothing, whatever was taken already', async () => {
  for (const point of ['create', 'attach', 'init'] as const) {
    await using f = await fixture();
    let passes = 0;
    f.host.hooks.set(point, () => {
      if (point === 'init' || ++passes === 3) throw new AenvError('drive_unusable', 'as planned');
    });
    await assert.rejects(f.sandboxes.create(COLD), hasCode('drive_unusable'), point);
    assert.deepEqual(f.host.inventory(), [], point);
  }
});
