import { stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { resolvePath } from '../users/paths.ts';
import type { User } from '../users/users.ts';

/**
 * Where a process starts: the folder asked for, else the sandbox's, else the user's home. Only the first must exist;
 * an image may lack the others, and then it is `/`.
 * @throws AenvError `path_invalid`
 */
export async function workingDirectory(
  asked: string | undefined,
  user: User,
  workdir: string | undefined,
): Promise<string> {
  if (asked !== undefined && asked !== '') {
    const path = resolvePath(asked, user);
    const kind = await kindOf(path);
    if (kind === 'missing') throw new AenvError('path_invalid', `cwd '${path}' does not exist`);
    if (kind === 'other') throw new AenvError('path_invalid', `cwd '${path}' is not a directory`);
    return path;
  }
  for (const candidate of [workdir, user.home]) {
    if (candidate === undefined || candidate === '') continue;
    const path = resolvePath(candidate, user);
    if ((await kindOf(path)) === 'directory') return path;
  }
  return '/';
}

async function kindOf(path: string): Promise<'directory' | 'other' | 'missing'> {
  try {
    return (await stat(path)).isDirectory() ? 'directory' : 'other';
  } catch {
    return 'missing';
  }
}
