import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { LogFields, Logger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { Catalog } from '../../snapshots/catalog/catalog.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import type { Template } from '../../templates/contract.ts';
import { diskLayers, localLayers } from '../../templates/layers.ts';
import type { CreateSandbox } from '../contract.ts';
import { createLaunch } from '../launch/launch.ts';
import { SerialLogs } from '../launch/serial-logs.ts';
import type { SandboxObserver } from '../observe/contract.ts';
import { type LifecycleOptions, Sandboxes } from '../service.ts';
import { FakeHost } from './fake-host.ts';
import { ManualClock } from './manual-clock.ts';

export const TEMPLATE: Template = {
  templateId: 'tbasetbasetbasetbase',
  buildId: '0c8f31a5-5d1c-4f0e-9d0e-2f6f0a4ce7a1',
  aliases: ['base'],
  cpuCount: 1,
  memoryMb: 512,
  diskSizeMb: 10_240,
  createdAt: new Date(0),
  updatedAt: new Date(0),
  lastSpawnedAt: null,
  spawnCount: 0,
  envdVersion: '0.6.13',
  source: { imageDigest: 'sha256:00', layers: localLayers(['/base.layer']) },
  start: { envVars: { FROM: 'template', KEEP: '1' }, user: 'user', workdir: '/home/user' },
};

export const CREATE: CreateSandbox = {
  template: 'base',
  timeoutSeconds: 60,
  metadata: {},
  envVars: {},
  secure: true,
  allowInternetAccess: null,
  network: { allowPublicTraffic: true, httpsPorts: [] },
  onTimeout: 'kill',
  pauseMemory: true,
  autoResume: false,
};

/** Hears everything and remembers nothing. */
export const SILENT_OBSERVER: SandboxObserver = {
  starting: () => ({ [Symbol.dispose]() {} }),
  created() {},
  running() {},
  hooksRan() {},
  endChanged() {},
  ending() {},
  over() {},
};

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** The lifecycle on a host in memory, with a real ledger in a folder of its own. */
export interface Fixture extends AsyncDisposable {
  readonly sandboxes: Sandboxes;
  readonly snapshots: Catalog;
  readonly host: FakeHost;
  readonly clock: ManualClock;
  readonly ledger: Ledger;
  readonly lines: LogLine[];
  readonly spawns: string[];
  /** folder of the console logs */
  readonly serialDir: string;
  /** Another lifecycle on the same host and ledger, as after a restart of the daemon. */
  restart(): Sandboxes;
}

export async function fixture(change: Partial<LifecycleOptions> = {}): Promise<Fixture> {
  const home = await mkdtemp(join(tmpdir(), 'aenv-sandboxes-'));
  const ledger = openLedger(home);
  ledger.templates.put(TEMPLATE);
  const host = new FakeHost();
  const clock = new ManualClock();
  const lines: LogLine[] = [];
  const spawns: string[] = [];
  const templates: LifecycleOptions['templates'] = {
    resolve(reference) {
      if (reference === 'base') return TEMPLATE;
      throw new AenvError('template_not_found', `template '${reference}' not found`);
    },
    recordSpawn: (id) => void spawns.push(id),
  };
  const log = recordingLogger(lines);
  const repository = { verify: async () => ({ checkedBytes: 0, problems: [] }) };
  const { checkpoints } = host;
  const snapshots = new Catalog({ ...{ ledger, repository, checkpoints, log }, namespace: 'default' });
  const options: LifecycleOptions = {
    ledger: ledger.sandboxes,
    templates,
    snapshots,
    namespace: 'default',
    launch: createLaunch(host),
    startPointOf: async ({ source }) => ({ kind: 'disk', disk: { kind: 'layers', layers: diskLayers(source) } }),
    checkpoints,
    limits: { maxSandboxes: 1000, memoryShare: 0.5, maxConcurrentStarts: 4, maxQueuedStarts: 64 },
    keepEnded: { days: 7, count: 10_000 },
    paused: {},
    snapshotLimits: {},
    shutdown: { action: 'kill', timeoutMs: 60_000 },
    serialLogs: new SerialLogs(join(home, 'serial')),
    readAvailableMemory: () => 1_000_000,
    observer: SILENT_OBSERVER,
    clock,
    log,
    metrics: silentMetrics,
    ...change,
  };
  const sandboxes = new Sandboxes(options);
  return {
    sandboxes,
    snapshots,
    host,
    clock,
    ledger,
    lines,
    spawns,
    serialDir: join(home, 'serial'),
    restart: () => new Sandboxes(options),
    async [Symbol.asyncDispose]() {
      const closed = sandboxes.close();
      // A test that failed may have left a step hanging; only time ends the wait for it.
      await clock.advance(30_000);
      await closed;
      ledger.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

export function recordingLogger(lines: LogLine[], base: LogFields = {}): Logger {
  const write = (level: string) => (message: string, fields?: LogFields) =>
    void lines.push({ level, message, fields: { ...base, ...fields } });
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => recordingLogger(lines, { ...base, ...fields }),
  };
}
