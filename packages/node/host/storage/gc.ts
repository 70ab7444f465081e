import { readFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { collectAssets } from '../../assets/collect/collect.ts';
import { HomeUses } from '../../assets/homes/home-uses.ts';
import { keyFile } from '../../auth/key-file.ts';
import type { Config } from '../../config/schema.ts';
import { filesOfTemplate } from '../../daemon/assets.ts';
import { foldersOf, makeFolders } from '../../daemon/folders.ts';
import { openSnapshots } from '../../daemon/snapshots.ts';
import type { Collected } from '../../storage/contract.ts';
import { NodeStorage } from '../../storage/service.ts';
import { openLedger } from '../../store/ledger.ts';
import { removeUnusedColdTemplates } from '../../templates/pull/cold-templates.ts';
import { findDaemon } from '../daemon/state.ts';

export interface GcOptions {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly all: boolean;
  readonly dryRun: boolean;
}

const HOUR_MS = 3_600_000;
const WAIT_MS = 10_000;
/** A collection waits for who uses assets, and sizes what it removes. */
const REQUEST_MS = 600_000;

/** Has the daemon of this host collect, if it runs; collects itself otherwise. A dry run only looks, in any case. */
export async function gc({ config, env, all, dryRun }: GcOptions): Promise<Collected> {
  if (dryRun) return preview(config, all);
  const daemon = await findDaemon(config.runtime);
  return daemon === undefined ? collectHere(config, all) : askDaemon(daemon.url, config.home, env, all);
}

async function preview(config: Config, all: boolean): Promise<Collected> {
  const keepMs = keepOf(config);
  const before = all ? Number.POSITIVE_INFINITY : Date.now() - keepMs;
  const report = await collectAssets({
    ...{ assetsDir: config.assets, dryRun: true, keepHomesMs: keepMs, waitMs: WAIT_MS, clock: systemClock },
    isKept: ({ usedAt }) => usedAt >= before,
  });
  if (report.blockedBy.length === 0) return report;
  throw new AenvError(
    'storage_unknown',
    `nothing can be removed, since these cannot be read: ${report.blockedBy.join(', ')}`,
  );
}

/** Collecting asks for no disk. */
const NO_DISKS = {
  layersOf: () => Promise.reject(new AenvError('block_daemon_failed', 'nothing serves disks while the node is down')),
};

/** The ledger is ours meanwhile, so that no daemon starts. */
async function collectHere(config: Config, all: boolean): Promise<Collected> {
  const folders = foldersOf(config);
  await makeFolders(folders);
  using ledger = openLedger(config.home);
  const clock = systemClock;
  const repository = await openSnapshots(folders, NO_DISKS, clock, silentLogger);
  try {
    const templates = () => ledger.templates.versions();
    const storage = new NodeStorage({
      ...{ assetsDir: config.assets, home: config.home, keepMs: keepOf(config), waitMs: WAIT_MS, templates },
      uses: new HomeUses({
        ...{ assetsDir: config.assets, home: config.home, clock },
        referred: () => templates().flatMap((template) => filesOfTemplate(config, template)),
      }),
      own: {
        unnamedTemplates: (before) => removeUnusedColdTemplates(ledger, before),
        // The next start of the daemon does that: which machines templates have is known when it has looked at the host.
        machines: async () => 0,
        snapshots: () =>
          repository.gc({
            memoryBases: () => ledger.sandboxes.live().flatMap(({ vm }) => (vm === undefined ? [] : [vm.memoryBase])),
          }),
      },
      ...{ clock, log: silentLogger },
    });
    return await storage.collect({ all });
  } finally {
    await repository.close();
  }
}

async function askDaemon(url: string, home: string, env: NodeJS.ProcessEnv, all: boolean): Promise<Collected> {
  const key = env.AENV_API_KEY || (await readFile(keyFile(home), 'utf8')).trim();
  const response = await fetch(new URL('/aenv/storage/gc', url), {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ all }),
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const body = (await response.json()) as Collected & { readonly message?: string; readonly remediation?: string };
  if (response.ok) return body;
  throw new AenvError('daemon_failed', `the daemon answered ${response.status}: ${body.message ?? ''}`, {
    ...(body.remediation === undefined ? {} : { remediation: body.remediation }),
  });
}

function keepOf({ storage }: Config): number {
  return storage.keepUnusedHours * HOUR_MS;
}
