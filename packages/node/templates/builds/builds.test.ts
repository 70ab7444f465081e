import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { unguarded } from '../../assets/testing/unguarded.ts';
import { ManualClock } from '../../sandboxes/testing/manual-clock.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import type { BuildableTemplate, BuildOptions } from '../builtin/contract.ts';
import { localLayers } from '../layers.ts';
import { BuildLog } from './build-log.ts';
import { Builds } from './builds.ts';

const ALL = { offset: 0, limit: 100 };
const MADE = {
  source: { imageDigest: 'sha256:aa', layers: localLayers(['/layers/a']) },
  start: { envVars: {}, user: 'user', workdir: '/home/user', startCommand: { cmd: 'serve', user: 'root' } },
};

let home = '';
let ledger: Ledger;
let builds: Builds;
/** settles the build that is under way */
let finish: { resolve(made: typeof MADE): void; reject(error: unknown): void };
let options: BuildOptions | undefined;
let prepared: string[] = [];
const clock = new ManualClock();
const BUILTIN: BuildableTemplate = {
  template: { alias: 'tool-v1', cpuCount: 1, memoryMb: 256, diskSizeMb: 1024 },
  build(given) {
    options = given;
    const { promise, resolve, reject } = Promise.withResolvers<typeof MADE>();
    finish = { resolve, reject };
    given.signal.addEventListener('abort', () => reject(given.signal.reason));
    return promise;
  },
};

beforeEach(async () => {
  prepared = [];
  home = await mkdtemp(join(tmpdir(), 'aenv-builds-'));
  ledger = openLedger(home);
  builds = open();
});
afterEach(async () => {
  await builds.close();
  ledger.close();
  await rm(home, { recursive: true, force: true });
});

const open = () =>
  new Builds({
    builtins: { tool: BUILTIN },
    ...{ assetsDir: '/assets', layersDir: '/layers', envdVersion: '0.6.13' },
    prepare: async ({ templateId }) => void prepared.push(templateId),
    ...{ ledger: ledger.templates, uses: unguarded, clock, log: silentLogger },
  });

test('a build is told from its start, then registers the template under the ids that it was told by', async () => {
  const { templateId, buildId } = builds.startBuiltin('tool');
  assert.equal(builds.state(templateId, buildId, ALL).status, 'building');
  assert.equal(ledger.templates.byAlias('tool-v1'), undefined);
  options?.log.info('downloading', { packages: ['a', 'b'], ms: 1500, digest: 'x' });
  options?.log.debug('detail');
  options?.log.child({ part: 1 }).warn('careful');
  finish.resolve(MADE);
  await turn();
  const { status, entries } = builds.state(templateId, buildId, ALL);
  assert.equal(status, 'ready');
  assert.deepEqual(
    entries.map(({ level, message }) => [level, message]),
    [
      ['info', 'downloading (2 packages, 1.5 s, digest x)'],
      ['warn', 'careful'],
      ['info', 'capturing a machine that sandboxes are continued from'],
      ['info', 'tool-v1 is ready (0.0 s)'],
    ],
  );
  assert.deepEqual(builds.state(templateId, buildId, { offset: 1, limit: 1, level: 'info' }).entries[0]?.level, 'warn');
  assert.deepEqual(prepared, [templateId]);
  const template = ledger.templates.byAlias('tool-v1');
  assert.deepEqual([template?.templateId, template?.buildId], [templateId, buildId]);
  assert.deepEqual([template?.memoryMb, template?.source, template?.start], [256, MADE.source, MADE.start]);
});

test('two at once are one build, and building the same again changes nothing', async () => {
  const first = builds.startBuiltin('tool');
  assert.deepEqual(builds.startBuiltin('tool'), first);
  finish.resolve(MADE);
  await turn();
  const again = builds.startBuiltin('tool');
  assert.equal(again.templateId, first.templateId);
  assert.notEqual(again.buildId, first.buildId);
  finish.resolve(MADE);
  await turn();
  assert.equal(builds.state(again.templateId, again.buildId, ALL).status, 'ready');
  assert.equal(ledger.templates.byAlias('tool-v1')?.buildId, first.buildId);
});

test('a build that fails keeps its reason, and the template stays what it was', async () => {
  const first = builds.startBuiltin('tool');
  finish.resolve(MADE);
  await turn();
  const { templateId, buildId } = builds.startBuiltin('tool');
  finish.reject(new AenvError('no_space', 'the disk is full', { remediation: 'Make room.' }));
  await turn();
  const { status, reason, entries } = builds.state(templateId, buildId, ALL);
  assert.deepEqual([status, reason], ['error', 'the disk is full Make room.']);
  assert.deepEqual(entries.at(-1)?.message, 'the disk is full');
  assert.equal(ledger.templates.byAlias('tool-v1')?.buildId, first.buildId);
});

test('unknown names and builds are told; a restart remembers only what came of a build', async () => {
  const notFound = (error: unknown) => error instanceof AenvError && error.code === 'template_not_found';
  for (const name of ['nope', 'constructor']) assert.throws(() => builds.startBuiltin(name), notFound);
  const { templateId, buildId } = builds.startBuiltin('tool');
  assert.throws(() => builds.state('other', buildId, ALL), notFound);
  finish.resolve(MADE);
  await turn();
  await builds.close();
  builds = open();
  assert.deepEqual(builds.state(templateId, buildId, ALL), { templateId, buildId, status: 'ready', entries: [] });
  assert.throws(() => builds.state(templateId, 'b', ALL), notFound);
});

test('the end of the node stops a build, and waits for it', async () => {
  const { templateId, buildId } = builds.startBuiltin('tool');
  await builds.close();
  assert.equal(builds.state(templateId, buildId, ALL).status, 'error');
  assert.throws(
    () => builds.startBuiltin('tool'),
    (error) => error instanceof AenvError && error.code === 'shutting_down',
  );
});

test('a log is bounded, and errors are kept nevertheless', () => {
  const log = new BuildLog(clock);
  for (let line = 0; line < 20_000; line++) log.add('info', String(line));
  log.add('error', 'the reason');
  const all = log.read(0, 30_000);
  assert.equal(all.length, 10_001);
  assert.equal(all.at(-1)?.message, 'the reason');
  assert.deepEqual(
    log.read(0, 5, 'error').map(({ message }) => message),
    ['the reason'],
  );
});
