import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { BlobSource } from '@aenv/block/blob/contract.ts';
import { NULL_UUID } from '@aenv/block/lsmt/format.ts';
import { encodeHeader } from '@aenv/block/lsmt/header.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { FaultFront } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { RegistryFixture } from '../testing/registry-fixture.ts';
import { BlobCache } from './blob-cache.ts';
import { PART } from './geometry.ts';
import { RemoteLayers } from './remote-layers.ts';
import { TendedLayers, type TendedLayersOptions } from './tended-layers.ts';
import { TraceFiles } from './trace/trace-files.ts';

const SIZE = 4 * 2 ** 20;
const READ_AT = 20 * PART;

let fixture: RegistryFixture;
before(async () => {
  fixture = await RegistryFixture.start();
});
after(() => fixture.close());

/** A blob in the registry, and layers of one process after the other that share nothing but their traces. */
async function setUp(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'images-tended-'));
  t.after(() => rm(dir, { recursive: true }));
  const blob = randomBytes(SIZE);
  encodeHeader({ isSealed: true, uuid: randomUUID(), parentUuid: NULL_UUID, virtualSize: SIZE }).copy(blob);
  await pushBlob({ base: fixture.base, repository: 'r' }, blob);
  const front = await fixture.front();
  const remote = { host: front.host, repository: 'r', digest: digestOf(blob), size: SIZE };
  const open = async (cache: string, options: Partial<TendedLayersOptions> = {}) => {
    const parts = await BlobCache.start({
      ...{
        root: join(dir, cache),
        capacityBytes: 2 ** 30,
        keepFreeBytes: 0,
        offlineAfterMs: 20_000,
        log: silentLogger,
      },
    });
    const layers = new RemoteLayers(fixture.client([front.host]), parts);
    const traces = new TraceFiles(join(dir, 'traces'));
    const tended = new TendedLayers({
      ...{ layers, traces, clock: systemClock, log: silentLogger },
      ...{ traceMs: 20, completeAfterMs: undefined, completeUpToBytes: SIZE },
      ...options,
    });
    return { layers, tended };
  };
  return { blob, front, remote, open, traces: () => readdir(join(dir, 'traces')).catch(() => []) };
}

const read = async (source: BlobSource, offset: number) => {
  const target = Buffer.alloc(PART);
  if (!source.readSync(target, offset)) await source.read(target, offset);
  return target;
};

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = AbortSignal.timeout(20_000);
  while (!(await holds())) await systemClock.sleep(5, limit);
}

const rangesOf = (front: FaultFront) => front.matching(/blobs/).map(({ headers }) => headers.range ?? '');

test('what a guest reads first is written down, and fetched before the next one asks for it', async (t) => {
  const { blob, front, remote, open, traces } = await setUp(t);
  const hasRead = Promise.withResolvers<void>();
  const first = await open('first', { clock: { now: () => 0, sleep: () => hasRead.promise } });
  const source = await first.tended.ref(remote).open();
  assert.ok((await read(source, READ_AT)).equals(blob.subarray(READ_AT, READ_AT + PART)));
  hasRead.resolve();
  await until(async () => (await traces()).length === 1);
  await source.close();
  await first.tended.close();

  const second = await open('second');
  const again = await second.tended.ref(remote).open();
  const target = Buffer.alloc(PART);
  await until(() => again.readSync(target, READ_AT));
  assert.ok(target.equals(blob.subarray(READ_AT, READ_AT + PART)));
  assert.equal(again.readSync(target, 40 * PART), false, 'and nothing else');
  await again.close();
  await second.tended.close();
  assert.ok(rangesOf(front).every((range) => range.startsWith('bytes=')));
});

test('the rest of a layer comes in the background; then its registry is not needed any more', async (t) => {
  const { blob, front, remote, open } = await setUp(t);
  const large = await open('large', { completeAfterMs: 0, completeUpToBytes: SIZE - 1 });
  const part = await large.tended.ref(remote).open();
  await read(part, 0);
  await part.close();
  await large.tended.close();
  assert.equal(large.layers.isVerified(remote.digest), false, 'larger than what is fetched as a whole');

  const { tended, layers } = await open('whole', { completeAfterMs: 10 });
  const source = await tended.ref(remote).open();
  await until(() => layers.isVerified(remote.digest));
  front.rule = ({ reply }) => reply(503);
  for (let at = 0; at < SIZE; at += PART) assert.ok((await read(source, at)).equals(blob.subarray(at, at + PART)));
  await source.close();
  await tended.close();
});

test('a layer with another digest than it should have gives nothing more as soon as that is seen', async (t) => {
  const { front, remote, open } = await setUp(t);
  front.rule = (exchange) => {
    if (exchange.headers.range?.startsWith('bytes=0-') === false) {
      return exchange.relay({ change: (body) => body.fill((body[0] ?? 0) ^ 1, 0, 1) });
    }
  };
  const { tended } = await open('wrong', { completeAfterMs: 0, traceMs: 0 });
  const source = await tended.ref(remote).open();
  const outcome = async () =>
    read(source, READ_AT).then(
      () => '',
      (error: { code?: string }) => error.code ?? '',
    );
  await until(async () => (await outcome()) === 'layer_corrupt');
  await source.close();
  await tended.close();
});
