import { rm } from 'node:fs/promises';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { identify } from '@aenv/platform/process/identity.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { ControlServer } from '../control/control-server.ts';
import { PROTOCOL } from '../control/messages.ts';
import { blockdFolders } from '../layout.ts';
import { DiskService } from '../service/disk-service.ts';
import { ThreadHandle } from '../threads/thread-handle.ts';
import type { BlockdArguments } from './arguments.ts';
import { takeOwnership } from './ownership.ts';
import { becomeUser, makeFolders } from './privileges.ts';
import { findBlockd, formatState } from './state.ts';

/** A running block daemon. */
export interface Blockd {
  /** Resolves when a client has asked for the end, rejects when a thread has died. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** Of an upper, what has to be read still for it to be left alone. */
const MIN_LIVE_SHARE = 0.5;
/** How often the daemon makes sure that it is still the one that is meant. */
const WATCH_MS = 5_000;

/**
 * Starts the daemon in this process. It gives up root as soon as all of its code is loaded, before it reads anything that
 * a guest has written.
 */
export async function startBlockd(options: BlockdArguments, log: Logger): Promise<Blockd> {
  await using taken = new Rollback();
  const folders = blockdFolders(options.root, options.runtime);
  await makeFolders(folders, [options.root, options.runtime], options.uid);
  const { root, runtime, 'sources-module': module, 'sources-config': config } = options;
  const sources = module === undefined || config === undefined ? {} : { sources: { module, config } };
  const threads = Array.from(
    { length: options.threads },
    (_, number) => new ThreadHandle({ root, runtime, number, ...sources }, log),
  );
  taken.add(async () => {
    await Promise.all(threads.map((thread) => thread.close()));
  });
  await Promise.all(threads.map((thread) => thread.ready));
  if (options.uid !== undefined) becomeUser(options.uid);
  const ownership = takeOwnership(folders.lock);
  taken.add(() => ownership.close());

  const service = await DiskService.open({
    folders,
    threads,
    limits: {
      maxLayers: options['max-layers'],
      minGarbageBytes: options['min-garbage-bytes'],
      minLiveShare: MIN_LIVE_SHARE,
    },
    lookMs: options['look-ms'],
    log,
  });
  taken.add(() => service.close());
  const end = Promise.withResolvers<void>();
  const control = await ControlServer.listen(
    folders.control,
    {
      hello: () => ({ protocol: PROTOCOL, version: options.version, pid: process.pid }),
      create: (args) => service.create(args),
      attach: (args) => service.attach(args),
      detach: (args) => service.detach(args),
      remove: (args) => service.remove(args),
      list: () => service.list(),
      prepareSnapshot: (args) => service.prepareSnapshot(args),
      snapshot: (args) => service.snapshot(args),
      settleSnapshot: (args) => service.settleSnapshot(args),
      removeSnapshot: (args) => service.removeSnapshot(args),
      listSnapshots: () => service.listSnapshots(),
      flush: (args) => service.flush(args),
      compact: (args) => service.compact(args),
      stat: (args) => service.stat(args),
      counters: () => service.counters(),
      shutdown: () => {
        // The answer goes out first.
        setImmediate(end.resolve);
        return {};
      },
    },
    log,
  );
  taken.add(() => control.close());
  const self = await identify(process.pid);
  const state = { process: { pid: process.pid, startTime: self?.startTime ?? 0 }, protocol: PROTOCOL };
  await writeDurable(folders.state, formatState({ ...state, version: options.version }), 0o600);
  taken.add(() => rm(folders.state, { force: true }));
  let missed = 0;
  const watch = setInterval(() => {
    void findBlockd(folders.state).then((found) => {
      missed = found?.process.pid === process.pid ? 0 : missed + 1;
      if (missed > 1) end.reject(new Error('the runtime folder is gone, or belongs to another daemon'));
    });
  }, WATCH_MS);
  taken.add(() => clearInterval(watch));

  const ended = Promise.race([end.promise, ...threads.map((thread) => thread.failed)]);
  ended.catch(() => {});
  const owned = taken.keep();
  return { ended, close: () => owned.run() };
}
