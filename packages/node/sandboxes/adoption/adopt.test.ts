import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { CREATE, type Fixture, fixture } from '../testing/fixture.ts';
import { type AdoptionOptions, adoptAll } from './adopt.ts';

/** What the next daemon has when this one has crashed, which from now on knows of nothing. */
function next(f: Fixture, change: Partial<AdoptionOptions> = {}): AdoptionOptions {
  const { host, ledger, clock, sandboxes } = f;
  for (const live of sandboxes.routes.all()) {
    live.machine = undefined;
    sandboxes.routes.delete(live);
  }
  const slots = [...host.slotsInUse].map(
    (index): NetworkSlot => ({
      index,
      netns: `/netns/${index}`,
      tap: 'tap0',
      hostAddress: `10.200.0.${index}`,
      uid: 1,
    }),
  );
  const bootOf = (address: string) => {
    const slot = slots.find(({ hostAddress }) => hostAddress === address);
    return ledger.sandboxes.live().find(({ netns }) => netns === slot?.netns)?.bootId ?? '';
  };
  const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
  return {
    ...{
      ledger: ledger.sandboxes,
      clock,
      volumes: host.volumes,
      slots: host.slots,
      checkpoints: host.checkpoints,
      log,
    },
    driver: { adopt: async ({ incarnation }) => host.vms.get(incarnation) },
    kept: new Map(slots.map((slot) => [slot.netns, slot])),
    objection: async () => undefined,
    boot: host.boot,
    connectEnvd: ({ address }) => ({
      ...host.connectEnvd({ address, port: 0 }),
      init: async () => ({ bootId: bootOf(address), envdVersion: '0.6.13', steps: {} }),
    }),
    ...change,
  };
}

const DRIVE = {
  drive: { driveId: 'd', label: 'aenv-drive-1', mountPath: '/mnt/d', readOnly: true, sizeMb: 64 },
  disk: { kind: 'layers', layers: ['/drive.layer'] },
} as const;

test('what runs on is served by the next daemon, and all that it holds goes when it ends', async () => {
  await using f = await fixture();
  const { sandboxId, envdAccessToken } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 100 });
  await f.sandboxes.create({ ...CREATE, cold: true, drives: [DRIVE] });
  await f.clock.advance(30_000);
  const adopted = await adoptAll(next(f), f.ledger.sandboxes.live());
  const daemon = f.restart();
  daemon.takeOver(adopted);
  const view = daemon.get(sandboxId);
  assert.deepEqual([view.state, view.envdAccessToken], ['running', envdAccessToken]);
  assert.equal(view.endAt.getTime() - f.clock.now(), 70_000, 'its time ran on');
  assert.equal(daemon.routes.lookup(sandboxId).kind, 'running');
  await daemon.pause(sandboxId, { memory: true });
  assert.equal((await daemon.connect(sandboxId, 60)).resumed, true);
  const drives = daemon.routes.all().map(({ machine }) => machine?.drives.length);
  assert.deepEqual(drives.sort(), [0, 1]);
  for (const live of daemon.routes.all()) await daemon.kill(live.id);
  assert.deepEqual(f.host.inventory(), []);
  await daemon.close();
});

test('one that stood still for a pause goes on, and the half of a checkpoint goes', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.checkpointsOnDisk.set('half', { hostSecret: '', bootId: '', drives: [] });
  f.ledger.sandboxes.update(sandboxId, 'running', { state: 'pausing', checkpoint: { id: 'half', memory: true } });
  const vm = [...f.host.vms.values()][0];
  await vm?.pause();
  const adopted = await adoptAll(next(f), f.ledger.sandboxes.live());
  assert.deepEqual([adopted.length, vm?.state, f.host.checkpointsOnDisk.size], [1, 'running', 0]);
  assert.deepEqual(f.host.released, [undefined], 'its programs go on');
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.deepEqual([row?.state, row?.checkpoint], ['running', undefined]);
});

test('one that was booted from what is of another version now stays so: also what is captured of it says so', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const old = { kernel: { digest: 'k0', path: '/k0' }, toolsDrive: { digest: 't0', path: '/t0' } };
  f.ledger.sandboxes.update(sandboxId, 'running', { boot: old });
  const asked: unknown[] = [];
  const objection: AdoptionOptions['objection'] = async ({ boot }) => void asked.push(boot);
  const adopted = await adoptAll(next(f, { objection }), f.ledger.sandboxes.live());
  assert.deepEqual([asked, adopted[0]?.machine.boot], [[old], old]);
  const daemon = f.restart();
  daemon.takeOver(adopted);
  await daemon.pause(sandboxId, { memory: true });
  assert.deepEqual([...f.host.checkpointsOnDisk.values()][0]?.boot, old);
  await daemon.connect(sandboxId, 60);
  assert.deepEqual(f.ledger.sandboxes.get(sandboxId)?.boot, old, 'a second time, too');
  await daemon.kill(sandboxId);
  await daemon.close();
});

test('one whose row does not say what it was booted from gets what machines boot here', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.ledger.sandboxes.update(sandboxId, 'running', { boot: null });
  const [adopted] = await adoptAll(next(f), f.ledger.sandboxes.live());
  assert.deepEqual([adopted?.machine.boot, f.ledger.sandboxes.get(sandboxId)?.boot], [f.host.boot, f.host.boot]);
});

const FAULTS: readonly [RegExp, (f: Fixture) => Partial<AdoptionOptions>][] = [
  [/its network is gone/, () => ({ kept: new Map() })],
  [/its microVM has ended/, () => ({ driver: { adopt: async () => undefined } })],
  [/another VMM/, () => ({ objection: async () => 'it runs under another VMM' })],
  [
    /there is no disk/,
    (f) => ({ volumes: { ...f.host.volumes, open: () => Promise.reject(new Error('there is no disk')) } }),
  ],
  [
    /another guest answers/,
    (f) => ({
      connectEnvd: (guest) => ({
        ...f.host.connectEnvd(guest),
        init: async () => ({ bootId: 'other', envdVersion: '0.6.13', steps: {} }),
      }),
    }),
  ],
  [
    /does not answer/,
    (f) => ({
      connectEnvd: (guest) => ({
        ...f.host.connectEnvd(guest),
        init: async () => Promise.reject(new Error('envd does not answer')),
      }),
    }),
  ],
];

for (const [reason, change] of FAULTS) {
  test(`one that cannot be taken over is lost and says why: ${reason.source}`, async () => {
    await using f = await fixture();
    const { sandboxId } = await f.sandboxes.create(CREATE);
    const options = next(f, change(f));
    const vm = [...f.host.vms.values()][0];
    assert.deepEqual(await adoptAll(options, f.ledger.sandboxes.live()), []);
    const row = f.ledger.sandboxes.get(sandboxId);
    assert.deepEqual([row?.state, row?.endReason, row?.hostSecret], ['lost', 'daemon_crashed', '']);
    assert.match(row?.endMessage ?? '', reason);
    // A VM that was not taken over is ended by the pid in the ledger, which this host does not have.
    if (vm?.state === 'running') await vm.stop();
    if (options.kept.size > 0) assert.deepEqual(f.host.inventory(), []);
  });
}
