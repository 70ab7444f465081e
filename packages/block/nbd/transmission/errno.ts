import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ERRNO } from '../protocol/numbers.ts';

/** The error number that a client is told for what a volume threw. */
export function errnoOf(error: unknown): number {
  if (error instanceof RangeError) return ERRNO.invalid;
  if (error instanceof AenvError) {
    if (error.code === 'no_space') return ERRNO.noSpace;
    if (error.code === 'shutting_down') return ERRNO.shutDown;
  }
  return error instanceof Error && 'code' in error && error.code === 'ENOSPC' ? ERRNO.noSpace : ERRNO.io;
}
