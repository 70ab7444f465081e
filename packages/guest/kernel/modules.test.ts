import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { moduleDependencies, modulesInOrder, withoutSignature } from './modules.ts';

const MARK = '~Module signature appended~\n';

function module(depends: string): string {
  return `\x7fELF\0license=GPL\0depends=${depends}\0name=x\0`;
}

async function modulesFolder(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'guest-modules-'));
  for (const [name, text] of Object.entries({ 'modules.builtin': 'kernel/fs/ext4/ext4.ko\n', ...files })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text, 'latin1');
  }
  return folder;
}

test('modules come after all that they need, each once, built-in ones not at all', async () => {
  const folder = await modulesFolder({
    'kernel/drivers/virtio/virtio.ko': module('virtio_ring'),
    'kernel/drivers/virtio/virtio_ring.ko': module(''),
    'kernel/drivers/net/virtio_net.ko': module('net_failover,virtio,virtio_ring,ext4'),
    'kernel/drivers/net/net-failover.ko': module('failover'),
    'kernel/net/core/failover.ko': module(''),
    'kernel/unused.ko': module('nothing-there'),
  });
  try {
    const modules = await modulesInOrder(folder, ['virtio', 'virtio-net']);
    assert.deepEqual(
      modules.map(({ name }) => name),
      ['virtio_ring', 'virtio', 'failover', 'net_failover', 'virtio_net'],
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a module that is missing or needs itself is an error that names it', async () => {
  const folder = await modulesFolder({ 'a.ko': module('b'), 'b.ko': module('a'), 'c.ko': module('gone') });
  try {
    for (const [wanted, named] of [
      ['a', 'a'],
      ['c', 'gone'],
    ] as const) {
      await assert.rejects(
        modulesInOrder(folder, [wanted]),
        (error) => error instanceof AenvError && error.message.endsWith(` ${named}`),
      );
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('dependencies are read from the module itself', () => {
  assert.deepEqual(moduleDependencies(Buffer.from(module('failover,net-failover'), 'latin1')), [
    'failover',
    'net_failover',
  ]);
  assert.deepEqual(moduleDependencies(Buffer.from('no such entry')), []);
});

test('a signature is cut off; what only looks like one is left alone', () => {
  const body = Buffer.from(module(''), 'latin1');
  const info = (length: number) => {
    const bytes = Buffer.alloc(12);
    bytes.writeUInt32BE(length, 8);
    return bytes;
  };
  const signed = Buffer.concat([body, Buffer.alloc(200, 's'), info(200), Buffer.from(MARK)]);
  assert.deepEqual(withoutSignature(signed), body);
  const odd = Buffer.concat([body, info(1_000_000), Buffer.from(MARK)]);
  assert.deepEqual(withoutSignature(odd), odd);
  assert.deepEqual(withoutSignature(body), body);
});
