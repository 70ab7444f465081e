import { stat } from 'node:fs/promises';
import type { EntryInfo, Filesystem } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Call, Implementation } from '../rpc/call.ts';
import type { EnvdContext } from '../server/context.ts';
import { resolvePath } from '../users/paths.ts';
import { entryInfo } from './entry-info.ts';
import { fileError } from './errors.ts';
import { listTree } from './list.ts';
import { makeFolders } from './make-folder.ts';
import { move } from './move.ts';
import { removeTree } from './remove.ts';
import { watchMethods } from './watch/service.ts';

/** The filesystem service. */
export function filesystemService(envd: EnvdContext): Implementation<typeof Filesystem> {
  const locate = async (call: Call, path: string) => {
    const user = await envd.users.fromAuthorization(call.header('authorization'));
    return { user, path: resolvePath(path, user, envd.state.current.defaultWorkdir) };
  };
  const sources = async () => ({ accounts: await envd.users.accounts(), attributes: envd.attributes });
  const describe = async (path: string): Promise<EntryInfo> => entryInfo(path, await sources());

  return {
    async stat(request, call) {
      const { path } = await locate(call, request.path);
      return attempt(path, async () => ({ entry: await describe(path) }));
    },

    async listDir(request, call) {
      const { path } = await locate(call, request.path);
      return attempt(path, async () => {
        if (!(await stat(path)).isDirectory()) throw new AenvError('path_invalid', `path '${path}' is not a directory`);
        return { entries: await listTree(path, request.depth || 1, await sources()) };
      });
    },

    async makeDir(request, call) {
      const { user, path } = await locate(call, request.path);
      return attempt(path, async () => {
        if (!(await makeFolders(path, user))) throw new AenvError('path_exists', `directory '${path}' already exists`);
        return { entry: await describe(path) };
      });
    },

    async move(request, call) {
      const source = (await locate(call, named(request.source, 'source'))).path;
      const { user, path: destination } = await locate(call, named(request.destination, 'destination'));
      await attempt(source, () =>
        move(source, destination, { user, attributes: envd.attributes, signal: call.signal }),
      );
      return attempt(destination, async () => ({ entry: await describe(destination) }));
    },

    async remove(request, call) {
      const { path } = await locate(call, named(request.path, 'path'));
      if (path === '/') throw new AenvError('path_invalid', 'the root directory cannot be removed');
      await attempt(path, () => removeTree(path));
      return {};
    },

    ...watchMethods(envd, locate),
  };
}

/** For paths whose empty form would mean the whole home. */
function named(path: string, field: string): string {
  if (path === '') throw new AenvError('invalid_request', `\`${field}\` must not be empty`);
  return path;
}

async function attempt<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fileError(error, path);
  }
}
