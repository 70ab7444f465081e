import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { InvalidArgumentError, NotEnoughSpaceError, type Sandbox } from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';

let daemon: TestDaemon;
let sandbox: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

/** Space is taken without being written: the disk of the host is not what this is about. */
const FILL = `
avail=$(df --output=avail -B1M / | tail -1)
fallocate -l $((avail - 16))M /fill || exit 1
dd if=/dev/zero of=/fill-rest bs=1M 2>&1 | head -1`;

const refused = async () => {
  await assert.rejects(sandbox.files.write('big', 'x'.repeat(2_000_000)), (error) => {
    assert.ok(error instanceof NotEnoughSpaceError);
    assert.match(error.message, /space/);
    return true;
  });
  assert.equal(await sandbox.files.exists('big'), false);
};

test('T26: a full disk is told as such, also after a pause; with room again everything works', async () => {
  await sandbox.files.write('kept', 'as it was');
  assert.match(await shell(sandbox, FILL), /No space left on device/);
  await refused();
  assert.equal(await sandbox.pause(), true);
  sandbox = await sandbox.connect();
  await refused();
  assert.equal(await sandbox.files.read('kept'), 'as it was');
  await shell(sandbox, 'rm /fill /fill-rest');
  await sandbox.files.write('big', 'x'.repeat(2_000_000));
  assert.equal((await sandbox.files.getInfo('big')).size, 2_000_000);
  await assert.rejects(sandbox.files.write('kept/below', 'x'), InvalidArgumentError);
});
