import { constants } from 'node:os';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const { errno } = constants;

/** The native program has ended: inotify_init(2) failed, or somebody killed it. */
export function notWatchable(exitCode: number): AenvError {
  if (exitCode === errno.EMFILE) {
    return new AenvError('too_many_watches', 'there are as many watchers as fs.inotify.max_user_instances allows');
  }
  return new AenvError('internal', `the native program that watches files has ended with ${exitCode}`);
}

/** A failure of inotify_add_watch(2). */
export function watchError(code: number, path: string): AenvError {
  switch (code) {
    case errno.ENOENT:
      return new AenvError('path_not_found', `path '${path}' does not exist`);
    case errno.ENOTDIR:
      return new AenvError('path_invalid', `path '${path}' is not a directory`);
    case errno.ENAMETOOLONG:
      return new AenvError('path_invalid', `path '${path}' is too long to be watched`);
    case errno.EACCES:
      return new AenvError('forbidden', `path '${path}': operation not permitted`);
    case errno.ENOSPC:
      return new AenvError('too_many_watches', 'there are more directories than fs.inotify.max_user_watches allows');
    default:
      return new AenvError('internal', `path '${path}' cannot be watched: error ${code}`);
  }
}
