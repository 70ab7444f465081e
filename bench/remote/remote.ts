import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commitLayers } from '@aenv/block/layers/commit/commit.ts';
import { EXCHANGE_FORM } from '@aenv/block/layers/commit/layer-file.ts';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { ensureBaseImage } from '@aenv/images/base/build.ts';
import { convertLayout } from '@aenv/images/convert/from-layout.ts';
import { describedImage } from '@aenv/images/testing/block-layers.ts';
import { ensureRegistryProgram } from '@aenv/images/testing/debian-registry.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { loadConfig } from '../../packages/node/config/load.ts';
import { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Measurement } from '../measurement.ts';
import { ratioRow, row, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { median } from '../sampling/statistics.ts';
import { SlowLink } from './slow-link.ts';

const ROUNDS = 5;
const START_MS = 120_000;
/** A line of 200 Mbit/s to a registry in the same country. */
const LINE = { bytesPerSecond: 25e6, latencyMs: 10 } as const;

interface Start {
  readonly ms: number;
  readonly bytes: number;
}

/** How long it takes from an image that is only in its registry to a sandbox that runs. */
export const remote: Measurement = {
  name: 'remote',
  about: 'a sandbox from a cold image of block layers, read on demand, over fetching all of it first',
  limitMs: 20 * 60_000,
  async run(bench) {
    const { assets: assetsDir } = loadConfig({ env: process.env });
    process.env.AENV_TEST_REGISTRY ??= await ensureRegistryProgram({ assetsDir, log: silentLogger });
    const registry = await RegistryFixture.start();
    const link = await SlowLink.start({ upstream: registry.base, ...LINE });
    try {
      await pushBase(registry, assetsDir, bench.signal);
      const { a, b } = await interleave(
        bench,
        bench.rounds(ROUNDS),
        () => start(link, join(assetsDir, 'layers'), true),
        () => start(link, join(assetsDir, 'layers'), false),
        (lazy, whole) => `on demand ${lazy.ms.toFixed(0)} ms, all of it first ${whole.ms.toFixed(0)} ms`,
      );
      const times = { demand: a.map(({ ms }) => ms), whole: b.map(({ ms }) => ms) };
      const share = median(a.map(({ bytes }) => bytes)) / median(b.map(({ bytes }) => bytes));
      const note = 'series in ms; the base image as one layer, over a line of 200 Mbit/s and 10 ms; both boot';
      return [
        ratioRow('remote/cold start over full download first', times, { atMost: 1 }, { note }),
        seriesRow('remote/cold start', times.demand, 'ms'),
        row('remote/bytes fetched to start, over all', share, 'x'),
      ];
    } finally {
      await link.close();
      await registry.close();
    }
  },
};

/** Everything of the base image but the start state, as accelerated-container-image would push it. */
async function pushBase(registry: RegistryFixture, assetsDir: string, signal: AbortSignal): Promise<void> {
  const { layoutDir } = await ensureBaseImage({ assetsDir, log: silentLogger, signal });
  const layersDir = join(assetsDir, 'layers');
  const { layers } = await convertLayout(layoutDir, { layersDir, log: silentLogger, signal });
  const folder = await mkdtemp(join(tmpdir(), 'aenv-bench-remote-'));
  try {
    const path = join(folder, 'layer');
    const source = { layers: layers.slice(0, -1).map((layer) => fileLayer(layer.path)), isBottom: true };
    await commitLayers(new LayerPool(), { ...source, path, form: EXCHANGE_FORM, uuid: randomUUID() }, signal);
    const manifest = await describedImage(registry.layout, [await readFile(path)], { Env: ['PATH=/usr/bin:/bin'] });
    await push({ base: registry.base, repository: 'base' }, registry.layout, manifest.manifest, '1');
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** One start on a node that knows nothing of the image; what it leaves in the folder that nodes share is removed. */
async function start(link: SlowLink, layersDir: string, onDemand: boolean): Promise<Start> {
  await mkdir(layersDir, { recursive: true });
  const before = new Set(await readdir(layersDir));
  link.servesRanges = onDemand;
  try {
    await using daemon = await TestDaemon.start({
      startMs: START_MS,
      env: {
        AENV_REGISTRY_INSECURE: link.host,
        AENV_REGISTRY_COMPLETE_LAYERS: 'false',
        AENV_TEMPLATES_CAPTURE: 'false',
      },
    });
    const bytesBefore = link.bytes;
    const begin = performance.now();
    const answer = await daemon.api('POST', '/sandboxes-cold', { image: `${link.host}/base:1`, timeout: 600 });
    const ms = performance.now() - begin;
    const text = await answer.text();
    if (answer.status !== 201) throw new Error(`the start was answered with ${answer.status}: ${text}`);
    const bytes = link.bytes - bytesBefore;
    const { sandboxID } = JSON.parse(text) as { sandboxID: string };
    await daemon.api('DELETE', `/sandboxes/${sandboxID}`);
    return { ms, bytes };
  } finally {
    for (const name of await readdir(layersDir)) {
      if (!before.has(name)) await rm(join(layersDir, name), { recursive: true, force: true });
    }
  }
}
