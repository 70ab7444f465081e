import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { Config } from '../../config/schema.ts';
import { startDaemon } from '../daemon/start.ts';
import { findDaemon } from '../daemon/state.ts';
import { down } from '../down.ts';
import type { Output } from '../terminal/output.ts';
import { SelftestClient } from './client.ts';
import { Findings, type HazardFinding } from './findings.ts';
import { runScenario } from './scenario.ts';

export interface SelftestOptions {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  /** the daemon's main file */
  readonly entry: string;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** The first start makes what microVMs boot, and captures the template. */
const START_MS = 15 * 60_000;
/** A hook that never ends is part of the test where the limit makes that short, in seconds. */
const HANGING_HOOK_MAX = 30;

/**
 * `aenv selftest restore`: with the daemon that runs here, which is the one that matters, or with one of its own for as
 * long as it takes. Touches no sandbox but those that it makes.
 * @returns whether all holds
 * @throws AenvError when there is no daemon to be had; Error when the test itself cannot go on
 */
export async function selftestRestore(options: SelftestOptions): Promise<boolean> {
  const { config, output } = options;
  await using resources = new Rollback();
  const { url, home } = await daemonFor(options, resources);
  const apiKey = (await readFile(join(home, 'secrets', 'api-key'), 'utf8')).trim();
  const findings = new Findings();
  const hangingHook = config.restore.hooksSeconds <= HANGING_HOOK_MAX;
  const progress = (what: string) => output.err(`selftest: ${what}`);
  let broken: unknown;
  try {
    await runScenario(new SelftestClient(url, apiKey, options.signal), { findings, hangingHook, progress });
  } catch (error) {
    options.signal.throwIfAborted();
    broken = error;
  }
  const all = findings.all();
  const good = broken === undefined && all.every(({ status }) => status === 'ok');
  const message = broken instanceof Error ? broken.message : String(broken);
  if (options.json) {
    const error = broken === undefined ? {} : { error: message };
    output.out(JSON.stringify({ ok: good, ...error, hazards: all }, null, 2));
  } else {
    printTable(all, output);
    if (broken !== undefined) output.out(`The test could not go on: ${message}`);
  }
  return good;
}

/** The daemon that runs, or one that is gone with `resources`. */
async function daemonFor(
  { config, env, entry, output, signal }: SelftestOptions,
  resources: Rollback,
): Promise<{ readonly url: string; readonly home: string }> {
  const running = await findDaemon(config.runtime);
  if (running !== undefined) {
    output.err(`selftest: with the daemon at ${running.url}`);
    return { url: running.url, home: config.home };
  }
  output.err('selftest: no daemon runs, so one is started for the test');
  const root = await mkdtemp(join(tmpdir(), 'aenv-selftest-'));
  resources.add(() => rm(root, { recursive: true, force: true }));
  // MicroVMs run as users of their own and must get through to their disks.
  await chmod(root, 0o711);
  const [home, runtime] = [join(root, 'home'), join(root, 'run')];
  const { url } = await startDaemon({
    ...{ entry, runtime, logFile: join(root, 'daemon.log'), timeoutMs: START_MS, signal },
    env: { ...env, AENV_HOME: home, AENV_RUNTIME: runtime, AENV_ASSETS: config.assets, AENV_LISTEN: '127.0.0.1:0' },
  });
  const quiet: Output = { out: () => {}, err: () => {} };
  resources.add(() => down({ ...config, runtime }, undefined, quiet));
  return { url, home };
}

function printTable(findings: readonly HazardFinding[], output: Output): void {
  const width = Math.max(...findings.map(({ name }) => name.length));
  for (const { name, status, promise, detail, remedy } of findings) {
    output.out(`${status.padEnd(11)}  ${name.padEnd(width)}  ${promise}`);
    for (const line of detail) output.out(`${' '.repeat(15 + width)}${line}`);
    if (remedy !== undefined) output.out(`${' '.repeat(15 + width)}-> ${remedy}`);
  }
  const failed = findings.filter(({ status }) => status !== 'ok').length;
  output.out(
    failed === 0 ? 'A restore keeps its contract on this host.' : `${failed} of ${findings.length} do not hold.`,
  );
}
