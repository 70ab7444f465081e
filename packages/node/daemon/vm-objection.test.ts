import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { identify, killAndWait, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import { objectionTo } from './vm-objection.ts';

const DRIVE = '/assets/tools-of-then.erofs';
const BOOT = { kernel: { digest: 'k', path: '/kernel' }, toolsDrive: { digest: 't', path: DRIVE } };
const BUILD = { version: '7.2', accelerator: 'tcg', machine: 'microvm' } as const;
const uid = process.getuid?.() ?? 0;
const slot = { index: 1, netns: '/netns/1', tap: 'tap0', hostAddress: '10.0.0.1', uid };

let runDir: string;
let vmm: ProcessIdentity;
/** A process with the drive in its command line. */
before(async () => {
  runDir = await mkdtemp(join(tmpdir(), 'objection-'));
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1000)', DRIVE], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  const found = await identify(child.pid ?? 0);
  assert.ok(found !== undefined);
  vmm = found;
});
after(async () => {
  await killAndWait(vmm);
  await rm(runDir, { recursive: true });
});

const vm = () => ({ kind: 'qemu', incarnation: 'x', process: vmm, runDir, serialLog: '', memoryBase: '' }) as const;
const here = { program: process.execPath, toolsDrive: DRIVE };
const newer = { program: '/bin/sh', toolsDrive: '/assets/tools-of-now.erofs' };

test('a VM of another version is gone on with when the ledger says what it runs under and was booted from', async () => {
  assert.equal(await objectionTo({ vm: { ...vm(), build: BUILD }, boot: BOOT }, slot, newer), undefined);
  assert.equal(await objectionTo({ vm: vm() }, slot, here), undefined);
});

test('without that in its row it must be of this version; a drive that is not as it is said, and another user, are told', async () => {
  assert.match((await objectionTo({ vm: vm() }, slot, newer)) ?? '', /another VMM/);
  assert.match((await objectionTo({ vm: vm() }, slot, { ...newer, program: here.program })) ?? '', /tools-of-now/);
  const other = { ...BOOT, toolsDrive: { digest: 'o', path: '/assets/other' } };
  const known = { ...vm(), build: BUILD };
  assert.match((await objectionTo({ vm: known, boot: other }, slot, newer)) ?? '', /its tools drive is not/);
  assert.match((await objectionTo({ vm: known, boot: BOOT }, { ...slot, uid: uid + 1 }, newer)) ?? '', /users of VMs/);
});
