import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** The code of a system error, undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** A failed system call as the client shall read it; `path` is the one that the client named. */
export function fileError(error: unknown, path: string): AenvError {
  if (error instanceof AenvError) return error;
  const cause = { cause: error };
  switch (errnoOf(error)) {
    case 'ENOENT':
      return new AenvError('path_not_found', `path '${path}' does not exist`, cause);
    case 'ENOTDIR':
      return new AenvError('path_invalid', `path '${path}': a parent is not a directory`, cause);
    case 'EISDIR':
      return new AenvError('path_invalid', `path '${path}' is a directory`, cause);
    case 'EEXIST':
    case 'ENOTEMPTY':
      return new AenvError('path_exists', `path '${path}' already exists`, cause);
    case 'ENAMETOOLONG':
      return new AenvError('path_invalid', `path '${path}': file name too long`, cause);
    case 'ELOOP':
      return new AenvError('path_invalid', `path '${path}': too many levels of symbolic links`, cause);
    case 'EINVAL':
      return new AenvError('path_invalid', `path '${path}': invalid argument`, cause);
    case 'ENOSPC':
    case 'EDQUOT':
      return new AenvError('no_space', 'no space left on device', cause);
    case 'EROFS':
      return new AenvError('path_invalid', `path '${path}' is on a read-only file system`, cause);
    case 'EACCES':
    case 'EPERM':
      return new AenvError('forbidden', `path '${path}': operation not permitted`, cause);
    case 'EBUSY':
      return new AenvError('path_invalid', `path '${path}' is in use by the system`, cause);
    default:
      return AenvError.from(error);
  }
}
