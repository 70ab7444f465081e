import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** What the host says about a file as an error of the product. */
export function ioError(error: unknown, path: string): AenvError {
  if (error instanceof AenvError) return error;
  const code = codeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG') {
    return new AenvError('no_space', `no space to write ${path}`, { cause: error });
  }
  return new AenvError('io_failed', `${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
}

/** The host's name of an error, as `ENOENT`. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
