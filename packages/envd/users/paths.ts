import { posix } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { User } from './users.ts';

// limits.h of Linux: bytes of a name, and of a path with its closing NUL.
const NAME_MAX = 255;
const PATH_MAX = 4096;

/**
 * The absolute path that a client means: absolute, `~`, `~/…`, or relative to the user's home. An empty one is
 * `whenEmpty`, or the home. `.` and `..` are resolved by name, as clients do it themselves.
 * @throws AenvError `path_invalid` for what no file can be called
 */
export function resolvePath(path: string, user: User, whenEmpty?: string): string {
  const absolute = posix.resolve('/', expand(path, user, whenEmpty));
  checkNames(path, absolute);
  return absolute;
}

function expand(path: string, user: User, whenEmpty: string | undefined): string {
  if (path === '') return whenEmpty === undefined || whenEmpty === '' ? user.home : expand(whenEmpty, user, undefined);
  if (path === '~') return user.home;
  if (path.startsWith('~/')) return posix.join(user.home, path.slice(2));
  return path.startsWith('/') ? path : posix.join(user.home, path);
}

function checkNames(asked: string, absolute: string): void {
  if (absolute.includes('\0')) throw new AenvError('path_invalid', 'a path must not hold a NUL character');
  if (Buffer.byteLength(absolute) >= PATH_MAX) {
    throw new AenvError('path_invalid', `the path is longer than ${PATH_MAX - 1} bytes`);
  }
  for (const name of absolute.split('/')) {
    if (Buffer.byteLength(name) > NAME_MAX) {
      throw new AenvError(
        'path_invalid',
        `path '${asked}': a name is longer than ${NAME_MAX} bytes: file name too long`,
      );
    }
  }
}
