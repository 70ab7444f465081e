import assert from 'node:assert/strict';
import { chown, mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '@aenv/platform/process/run.ts';
import type { MicroVm, VmDriver, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import { TestBed } from './support/bed.ts';
import { MemoryNbd } from './support/nbd-server.ts';

const SIZE = 1024 * 1024;

let bed: TestBed;
let driver: VmDriver;
let folder: string;

before(async () => {
  bed = await TestBed.open();
  driver = await bed.openDriver();
  folder = join(bed.root, 'drives');
  await mkdir(folder, { mode: 0o711 });
});
after(() => bed.close());

async function rawFile(name: string, uid: number, content = ''): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  await truncate(path, SIZE);
  await chown(path, uid, uid);
  return path;
}

/** What the guest says of its drives, by serial. */
async function consoleOf(vm: MicroVm): Promise<string> {
  const deadline = Date.now() + bed.patience.boot;
  for (;;) {
    const text = await readFile(vm.record.serialLog, 'utf8').catch(() => '');
    if (/^ready/m.test(text)) return text;
    assert.ok(Date.now() < deadline && vm.state !== 'exited', `the guest did not come up:\n${text}`);
    await delay(50);
  }
}

const bootIdOf = (console: string) => /boot_id (\S+)/.exec(console)?.[1] ?? 'none';

test('files and an NBD socket are drives with their order, names and rights', async () => {
  const { network, ...rest } = await bed.makeSpec();
  const raw = await rawFile('raw', network.uid, 'raw content');
  const readOnly = await rawFile('ro', 0, 'for all');
  const nbd = new MemoryNbd(join(folder, 'nbd.sock'), SIZE, network.uid);
  nbd.data.write('over the network');
  await nbd.listen();
  const spec: VmSpec = {
    ...rest,
    network,
    drives: [
      { name: 'root', source: { kind: 'nbd', socket: join(folder, 'nbd.sock'), export: 'root', readOnly: false } },
      { name: 'tools', source: { kind: 'file', path: readOnly, format: 'raw', readOnly: true } },
      { name: 'a-raw', source: { kind: 'file', path: raw, format: 'raw', readOnly: false } },
    ],
  };
  const vm = await driver.start(spec);
  const console = await consoleOf(vm);
  const sectors = SIZE / 512;
  for (const line of [
    `drive vda serial=root ro=0 sectors=${sectors} holds=over the network`,
    `drive vdb serial=tools ro=1 sectors=${sectors} holds=for all`,
    `drive vdc serial=a-raw ro=0 sectors=${sectors} holds=raw content`,
    '3 drives',
  ]) {
    assert.ok(console.includes(line), `${line}\n${console}`);
  }
  await vm.stop();
  await nbd.close();
  const bootId = bootIdOf(console);
  assert.equal(nbd.data.toString('latin1', 0, 36), bootId);
  assert.equal((await readFile(raw)).toString('latin1', 0, 36), bootId);
  assert.equal((await readFile(readOnly)).toString('latin1', 0, 7), 'for all');
});

test('an NBD server that is away while the guest boots is waited for', async () => {
  const spec = await bed.makeSpec();
  const socket = join(folder, 'away.sock');
  const nbd = new MemoryNbd(socket, SIZE, spec.network.uid);
  await nbd.listen();
  const source = { kind: 'nbd', socket, export: 'root', readOnly: false } as const;
  const vm = await driver.start({ ...spec, drives: [{ name: 'root', source }] });
  await nbd.close();
  await delay(2_500);
  await nbd.listen();
  const console = await consoleOf(vm);
  assert.doesNotMatch(console, /cannot/);
  assert.equal(nbd.data.toString('latin1', 0, 36), bootIdOf(console));
  await vm.stop();
  await nbd.close();
});

test('a guest sees as many drives as the driver promises', async () => {
  const spec = await bed.makeSpec();
  const path = await rawFile('many', 0);
  const drives = Array.from({ length: driver.maxDrives }, (_, index) => ({
    name: `drive-${index}`,
    source: { kind: 'file', path, format: 'raw', readOnly: true } as const,
  }));
  const vm = await driver.start({ ...spec, drives });
  const console = await consoleOf(vm);
  assert.match(console, new RegExp(`^${driver.maxDrives} drives`, 'm'));
  const connection = await bed.dial(spec);
  assert.equal(await connection.asksAnew(bed.patience.boot), true, 'the network device is there as well');
  await connection.close();
  await vm.stop();
});

test('a file that another VM writes to is not opened a second time', async () => {
  const [one, two] = [await bed.makeSpec('t.hang'), await bed.makeSpec('t.hang')];
  const path = await rawFile('shared', one.network.uid);
  await run(['chmod', '0666', path]);
  const drives = [{ name: 'root', source: { kind: 'file', path, format: 'raw', readOnly: false } as const }];
  const vm = await driver.start({ ...one, drives });
  await assert.rejects(driver.start({ ...two, drives }), { code: 'boot_failed', message: /lock/ });
  await vm.stop();
  assert.deepEqual(await bed.leftovers(), []);
});
