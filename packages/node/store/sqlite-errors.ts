import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export type SqliteFault = 'busy' | 'full' | 'constraint' | 'other';

/** Which kind of failure an error of node:sqlite is; result codes of https://www.sqlite.org/rescode.html. */
export function sqliteFault(error: unknown): SqliteFault {
  if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) return 'other';
  // The low byte of an extended result code is the primary one.
  switch (error.errcode & 0xff) {
    case 5: // SQLITE_BUSY
    case 6: // SQLITE_LOCKED
      return 'busy';
    case 13: // SQLITE_FULL
      return 'full';
    case 19: // SQLITE_CONSTRAINT
      return 'constraint';
    default:
      return 'other';
  }
}

/** `no_space` for a full disk, `ledger_failed` for everything else; an AenvError passes as it is. */
export function toAenvError(error: unknown, what: string): AenvError {
  if (error instanceof AenvError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const full = sqliteFault(error) === 'full' || (error instanceof Error && 'code' in error && error.code === 'ENOSPC');
  return new AenvError(full ? 'no_space' : 'ledger_failed', `${what}: ${text}`, { cause: error });
}
