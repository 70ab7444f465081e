import assert from 'node:assert/strict';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { apiFixture } from '../api/testing/fixture.ts';
import { createLaunch } from '../sandboxes/launch/launch.ts';
import { FakeHost } from '../sandboxes/testing/fake-host.ts';
import { CREATE, fixture } from '../sandboxes/testing/fixture.ts';
import { snapshotState } from './disks/disk-state.ts';
import { verifyDisk } from './disks/verify-disk.ts';
import { envelopeText } from './repository/manifest/file.ts';
import { PAGE } from './repository/testing/lab.ts';
import { KeptMachines } from './testing/kept-machines.ts';

test('ten pauses of a guest that writes much stay one base and a small delta each, and lose nothing', async () => {
  await using machines = await KeptMachines.open();
  const { lab, checkpoints } = machines;
  const written = new Map<number, number>();
  let guest = machines.boot();
  for (let round = 1; round <= 10; round++) {
    // A seventh of the memory each time: without merging, the delta would soon be all of it.
    for (let page = 0; page < 360; page++) {
      const at = (round * 97 + page * 7) % 2560;
      guest.pages.set(at, round);
      written.set(at, round);
    }
    await checkpoints.capture(machines.request(guest, `c${round}`));
    await checkpoints.idle();
    const kept = (await lab.repository.list()).map(({ id }) => id);
    assert.deepEqual(kept, [`c${round}`]);
    const { memory } = await lab.repository.get(`c${round}`);
    const bytes = (memory.delta?.dataBytes ?? 0) + (memory.delta?.zeroBytes ?? 0);
    assert.ok(bytes <= 2560 * PAGE * 0.25, `round ${round}: ${bytes} bytes of delta`);
    guest = await machines.restore(`c${round}`);
    const whole = await lab.memoryOf(`c${round}`);
    for (const [page, value] of written) assert.equal(whole[page * PAGE], value, `round ${round}, page ${page}`);
    // What the next one maps is kept by the ledger of its VM.
    await checkpoints.remove(`c${round}`);
    const report = await lab.repository.gc({ memoryBases: () => [guest.memoryBase] });
    assert.deepEqual(report.blockedBy, []);
  }
  assert.equal((await lab.repository.gc({ memoryBases: () => [] })).bases, 1);
});

test('memory and disk are of one instant, the guest goes on before anything is waited for, and hears the time', async () => {
  await using machines = await KeptMachines.open();
  const { checkpoints, steps, lab } = machines;
  const guest = machines.boot();
  guest.pages.set(3, 7);
  const names = ['default/ready:v1'];
  await checkpoints.capture(machines.request(guest, 'c1', { kind: 'snapshot', names }));
  assert.deepEqual(steps, ['freeze', 'pause', 'disk', 'capture', 'resume', 'unfreeze']);
  await checkpoints.idle();
  const manifest = await lab.repository.get('c1');
  assert.deepEqual([manifest.names, manifest.memory.delta], [names, undefined]);
  assert.equal((await machines.restore('c1')).pages.size, 0);

  steps.length = 0;
  await checkpoints.capture(machines.request(guest, 'c2', { memory: false }));
  assert.deepEqual(steps, ['sync', 'pause', 'disk']);
  assert.deepEqual(await checkpoints.disksOf({ id: 'c2', memory: false }, []), {
    disk: { kind: 'snapshot', snapshot: 'c2' },
    drives: [],
  });
  assert.deepEqual([...machines.disks], ['c1', 'c2']);
  assert.equal((await lab.repository.list()).length, 1);
  await checkpoints.remove('c2');
  assert.deepEqual([...machines.disks], ['c1']);
});

test('a disk is verified against what was written, layer by layer', async () => {
  await using machines = await KeptMachines.open();
  const { checkpoints, lab, volumes } = machines;
  await checkpoints.capture(machines.request(machines.boot(), 'c1', { kind: 'snapshot' }));
  const { disk } = await lab.repository.get('c1');
  const path = machines.diskOf('c1');
  const { size } = await stat(path);
  assert.deepEqual({ ...(await verifyDisk(volumes, disk)) }, { checkedBytes: size, problems: [] });
  await writeFile(path, `layer of c2`);
  const [problem] = (await verifyDisk(volumes, disk)).problems;
  assert.deepEqual([problem?.artefact, problem?.path], ['layer of the disk', path]);
  assert.match(problem?.message ?? '', /its digest does not hold/);
  await rm(path);
  assert.match((await verifyDisk(volumes, disk)).problems[0]?.message ?? '', /it is missing/);

  // Without a digest it must at least be a layer, and the snapshot must be there.
  const old = { state: snapshotState('c1', []), paths: [] };
  await writeFile(path, 'no layer');
  assert.equal((await verifyDisk(volumes, old)).problems.length, 1);
  const gone = { layersOf: () => Promise.reject(new Error('there is no snapshot c1')) };
  assert.deepEqual(
    (await verifyDisk(gone, old)).problems.map(({ message }) => message),
    ['there is no snapshot c1'],
  );
});

test('a snapshot with a damaged or missing part, or of a newer version, is refused by name, with what to do', async () => {
  await using machines = await KeptMachines.open();
  const host = new FakeHost();
  const { checkpoints, lab } = machines;
  const launch = createLaunch({
    ...{ slots: host.slots, volumes: host.volumes, bootVm: host.bootVm, restoreVm: host.restoreVm, checkpoints },
    ...{ connectEnvd: host.connectEnvd, startService: host.startService, vmParts: host.vmParts },
    restoreLimits: host.restoreLimits,
    boot: host.boot,
  });
  await using f = await fixture({ launch });
  await using api = apiFixture({}, { sandboxes: f.sandboxes, snapshots: f.snapshots });
  const guest = machines.boot();
  guest.pages.set(3, 7);

  /** A fresh snapshot that is known to the API, and its parts. */
  let made = 0;
  const snapshot = async () => {
    const templateId = `snapshot0000000000${String(made++).padStart(2, '0')}`;
    const checkpointId = `c${made}`;
    await checkpoints.capture(machines.request(guest, checkpointId, { kind: 'snapshot' }));
    const size = { cpuCount: 1, memoryMb: 10, diskSizeMb: 1 };
    f.snapshots.add({
      ...{ templateId, checkpointId, ...size, sandboxId: 'i1', createdAt: new Date(), envdVersion: '0.6.13' },
      start: { envVars: {}, user: 'user', workdir: '/' },
      drives: [],
    });
    const folder = join(lab.root, 'by-id', checkpointId);
    return { templateId, folder, disk: machines.diskOf(checkpointId) };
  };
  const start = async (templateID: string) => await api.request('POST', '/v2/sandboxes', { templateID });
  const whole = await snapshot();
  assert.equal((await start(whole.templateId)).status, 201);

  const flip = async (path: string) => {
    const bytes = await readFile(path);
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await rm(path);
    await writeFile(path, bytes);
  };
  type Parts = Awaited<ReturnType<typeof snapshot>>;
  const cases: readonly (readonly [string, (parts: Parts) => Promise<void>, RegExp])[] = [
    ['a byte of the layer', ({ disk }) => flip(disk), /the layer .*disks\/c\d+ is damaged: its digest/],
    ['a missing layer', ({ disk }) => rm(disk), /the layer .*disks\/c\d+ is damaged: it is missing/],
    ['a byte of the devices', ({ folder }) => flip(join(folder, 'device.state')), /the device state of snapshot c\d+/],
    ['missing devices', ({ folder }) => rm(join(folder, 'device.state')), /the device state of snapshot c\d+.*missing/],
    ['a byte of the manifest', ({ folder }) => flip(join(folder, 'manifest.json')), /the manifest of snapshot c\d+/],
  ];
  for (const [what, damage, message] of cases) {
    const parts = await snapshot();
    await checkpoints.idle();
    await damage(parts);
    const { status, body } = await start(parts.templateId);
    assert.deepEqual([status, body.code, body.error_code], [500, 500, 'snapshot_corrupt'], what);
    assert.match(String(body.message), message);
    assert.match(String(body.remediation), /aenv snapshot verify/);
    // It holds nothing of the host, and can be removed.
    assert.equal(f.host.inventory().length, 0);
    const removed = await api.request('DELETE', `/templates/${parts.templateId}`);
    assert.equal(removed.status, 204, removed.text);
  }
  const newer = await snapshot();
  await checkpoints.idle();
  const path = join(newer.folder, 'manifest.json');
  const { snapshot: stored } = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, envelopeText(99, stored));
  const { status, body } = await start(newer.templateId);
  assert.deepEqual([status, body.error_code], [400, 'snapshot_unsupported']);
  assert.match(String(body.message), /snapshot c\d+ has version 99, known is 1/);
  assert.match(String(body.remediation), /version that made it/);
  assert.equal((await start(whole.templateId)).status, 201);
  await assert.rejects(checkpoints.open('c99'), (error) => {
    return error instanceof AenvError && error.code === 'snapshot_not_found' && error.status === 404;
  });
  assert.equal((await f.sandboxes.create(CREATE)).state, 'running');
});
