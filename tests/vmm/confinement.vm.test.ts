import assert from 'node:assert/strict';
import { readFile, readlink, stat } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { MicroVm, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import { TestBed } from './support/bed.ts';

let bed: TestBed;
let spec: VmSpec;
let vm: MicroVm;

before(async () => {
  bed = await TestBed.open();
  spec = await bed.makeSpec('t.hang');
  vm = await (await bed.openDriver()).start(spec);
});
after(() => bed.close());

const proc = (name: string) => `/proc/${vm.record.process.pid}/${name}`;

test('the VMM runs as the user of its slot, without groups, capabilities or ways to get them, under seccomp', async () => {
  const status = new Map(
    (await readFile(proc('status'), 'utf8')).split('\n').map((line) => {
      const [name = '', value = ''] = line.split(':');
      return [name, value.trim()] as const;
    }),
  );
  const ids = Array(4).fill(spec.network.uid).join('\t');
  assert.equal(status.get('Uid'), ids);
  assert.equal(status.get('Gid'), ids);
  assert.equal(status.get('Groups'), '');
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
    assert.match(status.get(set) ?? '', /^0+$/, set);
  }
  assert.equal(status.get('NoNewPrivs'), '1');
  assert.equal(status.get('Seccomp'), '2');
});

test('it is in the network namespace of its slot', async () => {
  const slot = await stat(spec.network.netns);
  assert.equal(await readlink(proc('ns/net')), `net:[${slot.ino}]`);
});

test('it hangs on nothing of this process: own session, output to a file, an environment of its own', async () => {
  const { pid } = vm.record.process;
  const fields = (await readFile(proc('stat'), 'utf8')).replace(/^.*\) /, '').split(' ');
  assert.equal(Number(fields[2]), pid, 'process group');
  assert.equal(Number(fields[3]), pid, 'session');
  assert.equal(await readlink(proc('fd/0')), '/dev/null');
  for (const fd of ['fd/1', 'fd/2']) assert.equal(await readlink(proc(fd)), `${spec.runDir}/stderr.log`);
  const environment = (await readFile(proc('environ'), 'utf8')).split('\0').map((entry) => entry.split('=')[0]);
  assert.deepEqual(environment.filter((name) => name !== '').sort(), ['PATH', ...Object.keys(bed.install.env)].sort());
});

test('guest memory is a private mapping of a shared file that the VMM cannot write', async () => {
  const path = `${bed.memoryDir}/zero-${spec.memoryMb}.mem`;
  const maps = (await readFile(proc('maps'), 'utf8')).split('\n').filter((line) => line.endsWith(path));
  assert.ok(maps.length > 0);
  for (const line of maps) assert.match(line, / rw-p /);
  const file = await stat(path);
  assert.equal(file.mode & 0o777, 0o444);
  assert.equal(file.uid, 0);
  assert.equal(file.blocks, 0, 'still nothing but holes');
});

test('its run folder is its own, and nobody else can look into it', async () => {
  const folder = await stat(spec.runDir);
  assert.deepEqual([folder.mode & 0o777, folder.uid, folder.gid], [0o700, spec.network.uid, spec.network.uid]);
});

test('it has neither a balloon nor a virtio console', async () => {
  const commandLine = (await readFile(proc('cmdline'), 'utf8')).replaceAll('\0', ' ');
  assert.doesNotMatch(commandLine, /balloon|virtio-serial|virtconsole/);
  assert.match(commandLine, /qboot\.rom/);
});

test('nothing is left of it after stop', async () => {
  await vm.stop();
  assert.deepEqual(await bed.leftovers(), []);
});
