import { stat } from 'node:fs/promises';
import type { CreateWatcherRequest, Filesystem, WatchDirRequest } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Call, Implementation } from '../../rpc/call.ts';
import type { EnvdContext } from '../../server/context.ts';
import { fileError } from '../errors.ts';
import type { Change } from './changes.ts';
import { eventOf, eventWithEntry, type FilesystemEvent, type ToEvent } from './events.ts';
import { isOnNetworkMount } from './network-mount.ts';
import { PolledWatch } from './polled-watch.ts';
import { streamChanges } from './stream.ts';
import { TreeWatch } from './tree-watch.ts';

type WatchMethods = Pick<
  Implementation<typeof Filesystem>,
  'watchDir' | 'createWatcher' | 'getWatcherEvents' | 'removeWatcher'
>;

/** The methods that watch. @param locate the absolute path that a call means */
export function watchMethods(
  envd: EnvdContext,
  locate: (call: Call, path: string) => Promise<{ readonly path: string }>,
): WatchMethods {
  const { watchers, options } = envd;

  const open = async (request: WatchDirRequest | CreateWatcherRequest, call: Call) => {
    const { path } = await locate(call, request.path);
    try {
      if (!(await stat(path)).isDirectory()) throw new AenvError('path_invalid', `path '${path}' is not a directory`);
      if (!request.allowNetworkMounts && (await isOnNetworkMount(path))) {
        throw new AenvError('path_invalid', `cannot watch path on network filesystem: ${path}`);
      }
      const { recursive, includeEntry } = request;
      const watch = await watchers.take(() => TreeWatch.open({ native: options.native, path, recursive }));
      const withEntry = async (change: Change): Promise<FilesystemEvent> => {
        const sources = { accounts: await envd.users.accounts(), attributes: envd.attributes };
        return eventWithEntry(change, path, watch.absolute(change.name), sources);
      };
      const toEvent: ToEvent = includeEntry ? withEntry : eventOf;
      return { watch, toEvent };
    } catch (error) {
      throw fileError(error, path);
    }
  };

  return {
    async *watchDir(request, call) {
      const { watch, toEvent } = await open(request, call);
      try {
        yield* streamChanges(watch, toEvent, call);
      } finally {
        watchers.release(watch);
      }
    },

    async createWatcher(request, call) {
      const { watch, toEvent } = await open(request, call);
      return { watcherId: watchers.keep(new PolledWatch(watch, toEvent)) };
    },

    async getWatcherEvents({ watcherId }) {
      return { events: await watchers.find(watcherId).take() };
    },

    removeWatcher({ watcherId }) {
      watchers.remove(watcherId);
      return {};
    },
  };
}
