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

test('guest memory is of no file, so no other VM sees it', async () => {
  const maps = (await readFile(proc('maps'), 'utf8')).split('\n');
  assert.deepEqual(
    maps.filter((line) => line.includes(bed.memoryDir)),
    [],
  );
  const size = spec.memoryMb * 1024 * 1024;
  const bytes = (range: string) => {
    const [start = 0, end = 0] = range.split('-').map((text) => Number.parseInt(text, 16));
    return end - start;
  };
  assert.ok(maps.some((line) => / rw-p 00000000 00:00 0\s*$/.test(line) && bytes(line.split(' ')[0] ?? '') >= size));
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
