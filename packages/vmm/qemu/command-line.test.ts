import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_ATTACHED_DRIVES } from '@aenv/contracts/guest/layout.ts';
import type { VmDrive, VmSpec } from '../contract/micro-vm.ts';
import { checkKernelArgs, checkShape } from './check-spec.ts';
import { bootCommandLine, restoreCommandLine } from './command-line.ts';
import { blockNode, MAX_DRIVES } from './drives.ts';
import type { QemuInstall } from './install/qemu-install.ts';

const install: QemuInstall = { version: '10.0.2', system: '/q/bin/qemu', dataDir: '/q/share', env: {} };
const spec: VmSpec = {
  incarnation: 'i1-a',
  runDir: '/run/aenv/vms/i1-a',
  serialLog: '/var/log/i1.log',
  cpuCount: 2,
  memoryMb: 512,
  kernel: '/k',
  initramfs: '/i',
  kernelArgs: 'console=ttyS0',
  drives: [],
  network: { index: 1, netns: '/run/netns/a', tap: 'tap0', hostAddress: '10.0.0.1', uid: 60_001 },
};
const memory = { path: '/m/zero-512.mem', access: 'none', ownedByVm: false } as const;

function lineOf(parts: Partial<Parameters<typeof bootCommandLine>[1]> = {}, changes: Partial<VmSpec> = {}): string {
  const args = bootCommandLine(
    { ...spec, ...changes },
    { install, accelerator: 'tcg', memory, qmpSocket: '/run/a,b/qmp.sock', ...parts },
  );
  return args.join(' ');
}

test('firmware comes from the same install, and is qboot', () => {
  assert.match(lineOf(), /-L \/q\/share -bios \/q\/share\/qboot\.rom/);
  const { dataDir: _dataDir, ...system } = install;
  assert.match(lineOf({ install: system }), /-bios qboot\.rom/);
});

test('memory is private: of no file for a boot, and of a file that is opened read-only where QEMU can do that', () => {
  assert.match(lineOf(), /"qom-type":"memory-backend-ram","id":"ram0","size":536870912,"share":false}/);
  assert.doesNotMatch(lineOf(), /zero-512/);
  const captured = lineOf({ memory: { path: '/m/base', access: 'read', ownedByVm: false } });
  assert.match(captured, /"share":false,"mem-path":"\/m\/base","readonly":true,"rom":"off"}/);
  const old = lineOf({ memory: { path: '/m/x.mem', access: 'write', ownedByVm: true } });
  assert.match(old, /"share":false,"mem-path":"\/m\/x\.mem"}/);
});

test('accelerators differ in nothing but themselves and the processor', () => {
  assert.match(lineOf({ accelerator: 'kvm' }), /-accel kvm -cpu host,migratable=on/);
  assert.match(lineOf(), /-accel tcg,thread=multi,tb-size=256 -cpu max/);
});

test('commas in paths stay what they are', () => {
  assert.match(lineOf(), /path=\/run\/a,,b\/qmp\.sock,server=on/);
});

test('kinds of drives become block nodes', () => {
  const rights = { discard: 'unmap', 'detect-zeroes': 'unmap' };
  assert.deepEqual(blockNode('drive0', { kind: 'nbd', socket: '/s,1', export: 'root', readOnly: false }), {
    driver: 'nbd',
    'node-name': 'drive0',
    'read-only': false,
    ...rights,
    server: { type: 'unix', path: '/s,1' },
    export: 'root',
    'reconnect-delay': 30,
  });
  assert.deepEqual(blockNode('drive1', { kind: 'file', path: '/f', format: 'raw', readOnly: false }), {
    driver: 'raw',
    'node-name': 'drive1',
    'read-only': false,
    ...rights,
    file: { driver: 'file', filename: '/f' },
  });
  assert.deepEqual(blockNode('drive2', { kind: 'device', path: '/dev/x', readOnly: true }), {
    driver: 'raw',
    'node-name': 'drive2',
    'read-only': true,
    file: { driver: 'host_device', filename: '/dev/x' },
  });
});

const drive = (name: string): VmDrive => ({
  name,
  source: { kind: 'file', path: '/f', format: 'raw', readOnly: true },
});
const bad: readonly [string, Partial<VmSpec>, RegExp][] = [
  ['an incarnation that ends the option', { incarnation: 'a,debug-threads=off' }, /misreads/],
  ['no CPU', { cpuCount: 0 }, /CPUs/],
  ['half a MiB', { memoryMb: 512.5 }, /memory/],
  ['too many drives', { drives: Array.from({ length: MAX_DRIVES + 1 }, (_, i) => drive(`d${i}`)) }, /at most 16/],
  ['two drives of one name', { drives: [drive('a'), drive('a')] }, /same name/],
  ['a name that virtio cuts off', { drives: [drive('a'.repeat(21))] }, /not a name/],
  ['a tap that is an option', { network: { ...spec.network, tap: 'tap0,script=/x' } }, /not the name of a link/],
  ['root as the user', { network: { ...spec.network, uid: 0 } }, /root/],
];

for (const [what, change, message] of bad) {
  test(`a spec with ${what} is refused`, () => {
    assert.throws(() => checkShape({ ...spec, ...change }), { code: 'boot_failed', message });
  });
}

test('root, tools and all attached drives fit', () => {
  assert.equal(MAX_ATTACHED_DRIVES + 2, MAX_DRIVES);
});

test('kernel arguments of two lines are refused', () => {
  assert.throws(() => checkKernelArgs('a\nb'), { code: 'boot_failed', message: /one line/ });
});

test('a machine is restored as it was booted, without a kernel and waiting for its state', () => {
  const parts = { install, accelerator: 'tcg', memory, qmpSocket: '/run/qmp.sock' } as const;
  const boot = bootCommandLine(spec, parts);
  const restore = restoreCommandLine(spec, parts);
  const kernel = boot.indexOf('-kernel');
  assert.deepEqual(restore.slice(0, kernel), boot.slice(0, kernel));
  assert.deepEqual(restore.slice(kernel), ['-global', 'migration.send-configuration=off', '-incoming', 'defer', '-S']);
});

test('a run folder whose socket would not fit is refused with what to do', () => {
  const fits = `/${'r'.repeat(97)}`;
  checkShape({ ...spec, runDir: fits });
  assert.throws(() => checkShape({ ...spec, runDir: `${fits}r` }), {
    code: 'config_invalid',
    remediation: /AENV_RUNTIME/,
  });
});
