import { constants } from 'node:os';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const { errno } = constants;

/** What the native program could not do, as the client shall read it. `stage` and `error` are those of spawn.c. */
export function launchError(
  stage: string,
  error: number,
  options: { readonly command: string; readonly cwd: string; readonly user: { readonly name: string } },
): AenvError {
  const { command, cwd, user } = options;
  if (stage === 'chdir') {
    return new AenvError('path_invalid', `user '${user.name}' cannot enter cwd '${cwd}': ${nameOf(error)}`);
  }
  if (stage !== 'exec') return new AenvError('internal', `starting '${command}' failed at ${stage}: ${nameOf(error)}`);
  switch (error) {
    case errno.ENOENT:
    case errno.ENOTDIR:
      return new AenvError('program_not_found', `'${command}': no such file or directory`);
    case errno.EACCES:
    case errno.EPERM:
    case errno.EISDIR:
      return new AenvError('program_not_executable', `'${command}': permission denied`);
    case errno.ENOEXEC:
      return new AenvError('program_not_executable', `'${command}': exec format error`);
    case errno.E2BIG:
      return tooLong();
    default:
      return new AenvError('program_not_executable', `'${command}': ${nameOf(error)}`);
  }
}

/** A failure to start the native program itself: the same arguments and environment go through its exec first. */
export function spawnError(error: unknown): AenvError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'E2BIG') return tooLong();
  if (code === 'ERR_INVALID_ARG_VALUE') {
    return holdsNul();
  }
  return new AenvError('internal', `the native program cannot be started: ${String(code ?? error)}`, { cause: error });
}

/** No program can be given such a string. */
export function holdsNul(): AenvError {
  return new AenvError('invalid_request', 'the command or an argument holds a NUL character');
}

function tooLong(): AenvError {
  return new AenvError(
    'arguments_too_long',
    'argument list too long: one argument or variable may have 128 KiB, all together a quarter of the stack limit',
  );
}

function nameOf(error: number): string {
  return Object.entries(errno).find(([, value]) => value === error)?.[0] ?? `error ${error}`;
}
