import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { sealOf } from '@aenv/guest/cache/asset-cache.ts';
import { createNetwork } from '@aenv/network/network.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { identify } from '@aenv/platform/process/identity.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { createApi } from '../api/api.ts';
import { createApiListener } from '../api/listener.ts';
import { apiSettings } from '../api/parts.ts';
import { HomeUses } from '../assets/homes/home-uses.ts';
import { ApiKeys } from '../auth/api-keys.ts';
import { loadApiKey } from '../auth/key-file.ts';
import { SingleKeyStore } from '../auth/key-store.ts';
import { WatchedCertificate } from '../certificates/watched-certificate.ts';
import type { Config } from '../config/schema.ts';
import { createFrontDoor } from '../front-door/front-door.ts';
import { forgetShutdownReport, writeShutdownReport } from '../host/daemon/shutdown-report.ts';
import { findDaemon, stateFile } from '../host/daemon/state.ts';
import { createMetrics } from '../observability/prometheus.ts';
import { adoptAll } from '../sandboxes/adoption/adopt.ts';
import { envdOverTcp } from '../sandboxes/envd-client/envd-client.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../sandboxes/faults.ts';
import { createStartService } from '../sandboxes/guest-service/start-service.ts';
import { createBootVm, createRestoreVm } from '../sandboxes/launch/boot-vm.ts';
import { createLaunch } from '../sandboxes/launch/launch.ts';
import { SerialLogs } from '../sandboxes/launch/serial-logs.ts';
import { readAvailableMemory } from '../sandboxes/limits/memory.ts';
import { ConsoleTail } from '../sandboxes/observe/console-tail.ts';
import { askGuestOverTcp } from '../sandboxes/observe/guest-report.ts';
import { Observatory } from '../sandboxes/observe/observatory.ts';
import { createCapturedGuests } from '../sandboxes/restoring/captured-guests.ts';
import { Sandboxes } from '../sandboxes/service.ts';
import { Catalog } from '../snapshots/catalog/catalog.ts';
import { NodeCheckpoints } from '../snapshots/checkpoints.ts';
import { collectSnapshots } from '../snapshots/collector.ts';
import { DiskSpace } from '../snapshots/disk-space.ts';
import { sweepSnapshots } from '../snapshots/sweep.ts';
import { openLedger } from '../store/ledger.ts';
import { BASE } from '../templates/base.ts';
import { Builds } from '../templates/builds/builds.ts';
import { BUILTINS } from '../templates/builtin/builtins.ts';
import { localLayers } from '../templates/layers.ts';
import { useGuestOverTcp } from '../templates/machine/use-guest.ts';
import { registerBuiltin } from '../templates/register.ts';
import { Templates } from '../templates/service.ts';
import { filesOfAssets, filesOfTemplate, layersOf, loadAssets } from './assets.ts';
import { type Folders, foldersOf, makeFolders } from './folders.ts';
import { openImages } from './image-templates.ts';
import { partsOf } from './parts.ts';
import { recoverHost, slotsOf } from './recovery.ts';
import { createStartPoints, openSnapshots } from './snapshots.ts';
import { openStorage } from './storage.ts';
import { openStorageService } from './storage-service.ts';
import { prepareVms } from './vms.ts';
import { createWarmPool, wantWarm } from './warm.ts';

export interface DaemonOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** version of the product */
  readonly version: string;
  readonly log: Logger;
  /** stops a start that is under way */
  readonly signal: AbortSignal;
  /** where tests stop it or end one of its processes */
  readonly faults?: LifecycleFaults;
}

export interface Daemon {
  readonly url: string;
  /** Stops accepting, ends all sandboxes and gives everything back. */
  close(): Promise<void>;
}

const TEAM = 'default';
/** How long a guest that is continued may take to answer; this is for a host that is overloaded. */
const RESTORED_GUEST_MS = 30_000;
const COLLECT_MS = 300_000;

/**
 * Puts the node together: the one place that knows all parts. It listens when everything else is ready; when a step
 * fails, what was taken before it is given back.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, env, version, log, signal, faults = noLifecycleFaults } = options;
  const clock = systemClock;
  const folders = foldersOf(config);
  await using taken = new Rollback();
  const part = partsOf(taken, log);

  await makeFolders(folders);
  const ledger = openLedger(config.home);
  part('ledger', () => ledger.close());
  await claimRuntimeFolder(folders);
  taken.add(() => rm(stateFile(config.runtime), { force: true }));
  await forgetShutdownReport(config.runtime);
  const bootstrap = new SingleKeyStore((await loadApiKey(config.home, env)).key);
  const keys = new ApiKeys({ ledger: ledger.keys, bootstrap, clock, log });
  const metrics = createMetrics();
  const { cert, key } = config.tls;
  const certificate =
    cert === undefined || key === undefined ? undefined : await WatchedCertificate.open({ cert, key }, { log });
  part('certificate', () => certificate?.close());

  const building = new AbortController();
  const booted: string[] = [];
  const uses = new HomeUses({
    ...{ assetsDir: config.assets, home: config.home, clock },
    referred: () => [
      ...booted,
      ...ledger.templates.versions().flatMap((template) => filesOfTemplate(config, template)),
    ],
  });
  const starting = AbortSignal.any([signal, building.signal]);
  const assets = uses.during(async () => {
    const loaded = await loadAssets(config, log, starting);
    booted.push(...filesOfAssets(loaded));
    await uses.refresh();
    return loaded;
  }, starting);
  // It may fail while something else is waited for, and is heard when its turn comes.
  assets.catch(() => {});
  // Also when what comes first fails, nothing goes on being built behind it.
  taken.add(async () => {
    building.abort(new AenvError('shutting_down', 'the start was given up'));
    await assets.catch(() => {});
  });
  const storage = await openStorage({ config, folders, version, log, metrics, signal });
  part('storage', () => storage.close());
  const { volumes } = storage;
  const repository = await openSnapshots(folders, volumes, clock, log);
  part('repository', () => repository.close());
  const running = await recoverHost({ config, folders, ledger, volumes, repository, log });
  const network = await createNetwork({
    runtimeDir: config.runtime,
    uidBase: config.network.uidBase,
    low: config.network.slotsLow,
    high: config.network.slotsHigh,
    alwaysDeniedCidrs: config.network.alwaysDeniedCidrs,
    keep: slotsOf(running),
    ...(config.network.cidr === undefined ? {} : { cidr: config.network.cidr }),
    ...{ clock, log, metrics },
  });
  part('network', () => network.close());
  const { qemu, guest, base } = await assets;
  const vms = await prepareVms({ qemu, guest }, folders, config, log, signal);
  part('virtual machines', () => vms.driver.close());

  const templates = new Templates({ ledger: ledger.templates, clock, namespace: TEAM });
  registerBuiltin({ ledger: ledger.templates, clock, log }, BASE, {
    source: { imageDigest: base.digest, layers: localLayers(base.layers.map(({ path }) => path)) },
    start: base.start,
    envdVersion: ENVD_VERSION,
  });
  const builds = new Builds({
    builtins: BUILTINS,
    assetsDir: config.assets,
    layersDir: layersOf(config.assets),
    envdVersion: ENVD_VERSION,
    prepare: (template) => startPoints.of(template),
    ...{ ledger: ledger.templates, uses, clock, log },
  });
  part('builds', () => builds.close());
  const { templates: images, drives } = await openImages({
    ...{ config, ledger, templates, builtin: builds, uses, clock, log },
    layerSources: storage.tellLayerSources,
  });
  part('images', () => images.close());
  part('drives', () => drives.close());
  const serialLogs = new SerialLogs(folders.serial);
  const observatory = new Observatory({
    sampleMs: config.metrics.sampleSeconds * 1000,
    keepMs: config.metrics.keepSeconds * 1000,
    askGuest: askGuestOverTcp,
    openConsole: (path) => new ConsoleTail(path),
    ...{ clock, log },
  });
  part('observatory', () => observatory.close());
  const { bootAttempts, bootTimeoutMs } = config.vmm;
  const guests = createCapturedGuests(envdOverTcp(clock), log);
  const checkpoints = new NodeCheckpoints({
    ...{ repository, volumes, host: vms.host, sealOf, faults, log },
    space: new DiskSpace({ folder: folders.home, keepFreeBytes: config.storage.keepFreeBytes }),
    guests,
  });
  part('checkpoints', () => checkpoints.close());
  const places = { driver: vms.driver, vmDir: folders.vms, serialLogs };
  const parts = { slots: network.pool, volumes, checkpoints, vmParts: vms.parts, boot: vms.boot };
  const restoring = { ...parts, restoreVm: createRestoreVm(places), connectEnvd: envdOverTcp(clock), faults };
  const warm = createWarmPool({ ...restoring, useGuest: useGuestOverTcp, config, serialLogs, clock, log, metrics });
  part('warm', () => warm.close());
  const launch = createLaunch({
    ...{ ...restoring, warm },
    bootVm: createBootVm({ ...places, attempts: bootAttempts, timeoutMs: bootTimeoutMs, log }),
    startService: createStartService({ clock }),
    restoreLimits: { guestMs: RESTORED_GUEST_MS, hooksMs: config.restore.hooksSeconds * 1000 },
  });
  const capturing = AbortSignal.any([signal, building.signal]);
  const startPoints = createStartPoints({
    ...{ config, vms, launch, guests, volumes, repository, uses, faults, clock, log, signal: capturing },
  });
  part('captured machines', () => startPoints.close());
  const adopted = await adoptAll(
    {
      ...{ ledger: ledger.sandboxes, driver: vms.driver, volumes, checkpoints, clock, log },
      ...{ slots: network.pool, kept: network.kept, objection: vms.objection, boot: vms.boot },
      connectEnvd: envdOverTcp(clock),
    },
    running,
  );
  // Nothing is started yet. What paused sandboxes and templates are continued from stays.
  const paused = ledger.sandboxes
    .live()
    .flatMap(({ state, checkpoint }) => (state === 'paused' && checkpoint !== undefined ? [checkpoint.id] : []));
  const captured = startPoints.idsOf(ledger.templates.versions());
  const needed = new Set([...paused, ...ledger.snapshots.checkpointIds(), ...captured]);
  const adoptedBases = adopted.map(({ machine }) => machine.vm.record.memoryBase);
  await sweepSnapshots({ repository, volumes, needed, memoryBases: adoptedBases, log });
  const snapshots = new Catalog({ ...{ ledger, repository, checkpoints, log }, namespace: TEAM });
  const sandboxes = new Sandboxes({
    ledger: ledger.sandboxes,
    ...{ snapshots, namespace: TEAM },
    startPointOf: (template) => startPoints.of(template),
    ...{ templates, checkpoints, launch, faults },
    limits: { ...config.limits, maxConcurrentStarts: config.limits.maxConcurrentStarts ?? availableParallelism() },
    keepEnded: { days: config.ledger.keepEndedDays, count: config.ledger.keepEnded },
    paused: config.paused,
    snapshotLimits: config.snapshots,
    shutdown: { action: config.shutdown.action, timeoutMs: config.shutdown.timeoutSeconds * 1000 },
    serialLogs,
    readAvailableMemory,
    observer: observatory,
    ...{ clock, log, metrics },
  });
  const memoryBases = () => ledger.sandboxes.live().flatMap(({ vm }) => (vm === undefined ? [] : [vm.memoryBase]));
  const collector = collectSnapshots({ ...{ repository, memoryBases, intervalMs: COLLECT_MS, clock, log } });
  part('collector', () => collector.close());
  const stored = openStorageService({
    ...{ config, uses, ledger, startPoints, repository, memoryBases, clock, log },
  });
  part('storage service', () => stored.close());
  const api = createApi({
    observations: observatory,
    // It knows the builds of both kinds.
    builds: images,
    apiKeys: keys,
    settings: apiSettings(config),
    ...{ sandboxes, templates, snapshots, images, drives, storage: stored.service, keys, log, metrics, version },
  });
  const frontDoor = createFrontDoor({
    directory: sandboxes.routes,
    control: createApiListener(api, log),
    config: {
      connectTimeoutMs: config.proxy.connectTimeoutMs,
      maxConnectionsPerSandbox: config.proxy.maxConnectionsPerSandbox,
    },
    ...{ clock, log, metrics },
  });
  // Together: requests that wait for a sandbox are answered because it ends.
  part('sandboxes and front door', async () => {
    const [report] = await Promise.all([sandboxes.close(), frontDoor.close()]);
    await writeShutdownReport(config.runtime, report).catch((error: unknown) => {
      log.warn('what the shutdown did could not be written down', { error });
    });
  });

  sandboxes.takeUpPaused();
  sandboxes.takeOver(adopted);
  signal.throwIfAborted();
  const { url } = await frontDoor.listen(config.listen);
  sandboxes.bringBack();
  // So that the first client need not wait for it.
  const first = templates.resolve(BASE.alias);
  void startPoints.of(first).then((from) => wantWarm(warm, first, from));
  if (certificate !== undefined) {
    const tls = await frontDoor.listenTls(config.tls.listen, certificate);
    log.info('HTTPS is served', { url: tls.url });
  }
  const self = await identify(process.pid);
  const state = { pid: process.pid, startTime: self?.startTime ?? 0, url };
  await writeDurable(stateFile(config.runtime), `${JSON.stringify(state)}\n`);
  const owned = taken.keep();
  return { url, close: () => owned.run() };
}

/** The ledger owns the home folder; another home could still use the same runtime folder. */
async function claimRuntimeFolder({ runtime }: Folders): Promise<void> {
  const other = await findDaemon(runtime);
  if (other === undefined || other.process.pid === process.pid) return;
  throw new AenvError('already_running', `a daemon (pid ${other.process.pid}) uses the runtime folder ${runtime}`);
}
