import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { layersState } from './disks/disk-state.ts';
import { hashFile } from './repository/hash-file.ts';
import { KeptMachines } from './testing/kept-machines.ts';

/** Files that a captured machine needs and its repository has not made: those that it has are in repository/integrity.test.ts. */

/**
 * A file is refused, by its name and before anything is started, whichever of its bytes was changed, and when it is missing;
 * what is whole again is used.
 */
async function refusesDamage(path: string, name: RegExp, open: () => Promise<void>): Promise<void> {
  await open();
  const whole = await readFile(path);
  const refused = async (why: string) => {
    await assert.rejects(open(), (error) => {
      assert.ok(error instanceof AenvError && error.code === 'snapshot_corrupt', `${why}: ${error}`);
      assert.match(error.message, name);
      assert.ok(error.message.includes(path) && error.remediation.length > 0);
      return true;
    });
  };
  for (let at = 0; at < whole.length; at += Math.max(1, Math.floor(whole.length / 5))) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 0x10;
    await writeFile(path, damaged);
    await refused(`byte ${at}`);
  }
  await writeFile(path, whole.subarray(0, -1));
  await refused('one byte less');
  await rm(path);
  await refused('nothing');
  await writeFile(path, whole);
  await open();
}

test('what a disk has written is checked when a pause goes on, with its memory or without', async () => {
  await using machines = await KeptMachines.open();
  const { checkpoints } = machines;
  const opens = async (id: string) => (await checkpoints.open(id)).close();
  await checkpoints.capture(machines.request(machines.boot(), 'c1'));
  await refusesDamage(machines.diskOf('c1'), /layer .*c1 is damaged/, () => opens('c1'));
  // Also where the memory that was kept is left aside.
  const boots = async (id: string, files?: Awaited<ReturnType<typeof checkpoints.capture>>['files']) => {
    const checkpoint = { id, memory: files === undefined, ...(files === undefined ? {} : { files }) };
    await checkpoints.disksOf(checkpoint, []);
  };
  await refusesDamage(machines.diskOf('c1'), /layer .*c1 is damaged/, () => boots('c1'));
  const { files } = await checkpoints.capture(machines.request(machines.boot(), 'c2', { memory: false }));
  assert.equal(files?.length, 1);
  await refusesDamage(machines.diskOf('c2'), /layer .*c2 is damaged/, () => boots('c2', files));
});

test('the disk of a captured template, and the tools drive that a guest goes on with, are checked', async () => {
  await using machines = await KeptMachines.open();
  const { checkpoints, lab, seals } = machines;
  const opens = async () => (await checkpoints.open('m1')).close();
  const layer = join(lab.folder, 'disk.layer');
  await writeFile(layer, 'what the guest wrote while it booted');
  const disk = { state: layersState(['/image', layer], [{ path: layer, ...(await hashFile(layer)) }]), paths: [] };
  await lab.snapshot('m1', [], { facts: { kind: 'template', disk } });
  await refusesDamage(layer, /layer .*disk\.layer is damaged/, opens);
  const { toolsDrive } = await lab.repository.get('m1');
  seals.set(toolsDrive.path, await hashFile(toolsDrive.path));
  await refusesDamage(toolsDrive.path, /tools drive of snapshot m1/, opens);
});
