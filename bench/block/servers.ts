import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import type { BlockDevice } from '@aenv/block/contract.ts';
import { run } from '@aenv/platform/process/run.ts';
import { fio } from './fio.ts';

/** A disk behind an NBD socket. */
export interface DiskServer extends AsyncDisposable {
  readonly name: string;
  readonly socket: string;
}

export interface DiskShape {
  /** bytes */
  readonly size: number;
  /** layers below the one that is written: the first is full, each further one has this share of the disk, scattered */
  readonly layers: number;
  readonly share: number;
}

const FILL = { name: 'fill', rw: 'write', blockSize: '1M', depth: 4 } as const;
const SCATTER = { name: 'scatter', rw: 'randwrite', blockSize: '64k', depth: 8 } as const;

/** Writes what layer `layer` of a chain has, the same for every kind of disk. */
async function writeLayer(
  socket: string,
  layer: number,
  { size, share }: DiskShape,
  signal: AbortSignal,
): Promise<void> {
  if (layer === 0) await fio({ socket, workload: FILL, size, signal });
  else await fio({ socket, workload: SCATTER, size, bytes: Math.floor(size * share), seed: layer, signal });
}

/** Ours: the block daemon as a node starts it, without compaction getting into the way. */
export async function openBlockd(): Promise<StorageHost> {
  return await StorageHost.open({ daemon: { 'min-garbage-bytes': Number.MAX_SAFE_INTEGER, 'look-ms': 3_600_000 } });
}

export async function serveOurs(
  host: StorageHost,
  shape: DiskShape,
  signal: AbortSignal,
): Promise<DiskServer & { disk: BlockDevice }> {
  const disk = await host.store.create('bench', { origin: { kind: 'layers', layers: [] }, sizeBytes: shape.size });
  const source = await disk.attach(process.getuid?.() ?? 0);
  if (source.kind !== 'nbd') throw new Error('no NBD socket');
  for (let layer = 0; layer < shape.layers; layer++) {
    await writeLayer(source.socket, layer, shape, signal);
    const { durable } = await disk.snapshot(`layer-${layer}`);
    await durable;
  }
  return { name: 'aenv', socket: source.socket, disk, [Symbol.asyncDispose]: () => disk.remove() };
}

/** A chain of qcow2 files behind qemu-nbd(8), with its defaults for a local disk. */
export async function serveQcow2(folder: string, shape: DiskShape, signal: AbortSignal): Promise<DiskServer> {
  const file = (layer: number) => join(folder, `layer-${layer}.qcow2`);
  const serve = (layer: number) => {
    const options = ['--persistent', '--shared=4', '--discard=unmap', '--detect-zeroes=unmap', '--format=qcow2'];
    return start('qcow2', join(folder, 'qcow2.sock'), (socket) => [
      'qemu-nbd',
      `--socket=${socket}`,
      ...options,
      file(layer),
    ]);
  };
  for (let layer = 0; layer <= shape.layers; layer++) {
    const backing = layer === 0 ? [] : ['-b', file(layer - 1), '-F', 'qcow2'];
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', ...backing, file(layer), String(shape.size)], { signal });
    if (layer === shape.layers) break;
    await using server = await serve(layer);
    await writeLayer(server.socket, layer, shape, signal);
  }
  return await serve(shape.layers);
}

/** A file without layers behind nbdkit(1): the least that a server in C does. */
export async function serveRaw(folder: string, { size }: DiskShape, signal: AbortSignal): Promise<DiskServer> {
  const path = join(folder, 'raw');
  await writeFile(path, '');
  await truncate(path, size);
  const server = await start('nbdkit', join(folder, 'nbdkit.sock'), (socket) => [
    ...(['nbdkit', '--foreground', `--unix=${socket}`, 'file', path] as const),
  ]);
  await fio({ socket: server.socket, workload: FILL, size, signal });
  return server;
}

async function start(
  name: string,
  socket: string,
  argv: (socket: string) => readonly [string, ...string[]],
): Promise<DiskServer> {
  const [file, ...args] = argv(socket);
  const child = spawn(file, args, { stdio: 'ignore' });
  const deadline = Date.now() + 20_000;
  while ((await stat(socket).catch(() => undefined)) === undefined) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await end(child);
      throw new Error(`${name} does not serve`);
    }
    await delay(20);
  }
  return { name, socket, [Symbol.asyncDispose]: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // In order: qemu-nbd writes back what it holds of its tables, and both remove their sockets.
  child.kill('SIGTERM');
  await ended;
}
