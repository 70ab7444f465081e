import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Place in a list ordered by start time and id: the last item of the page before. */
export interface Cursor {
  /** `ms` since the epoch */
  readonly startedAt: number;
  readonly sandboxId: string;
  readonly order: 'asc' | 'desc';
}

const MAX_LENGTH = 200;
const FORM = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)__([a-z0-9]{1,64})(__asc)?$/;

/** A token that says where to go on, opaque to clients. It stays valid when sandboxes come and go. */
export function encodeCursor(cursor: Cursor): string {
  const suffix = cursor.order === 'asc' ? '__asc' : '';
  return Buffer.from(`${new Date(cursor.startedAt).toISOString()}__${cursor.sandboxId}${suffix}`).toString('base64url');
}

/** @throws AenvError `invalid_request` for a token that was not made here or belongs to the other order */
export function decodeCursor(token: string, order: Cursor['order']): Cursor {
  const bad = (why: string) => new AenvError('invalid_request', `bad nextToken: ${why}`);
  if (token.length > MAX_LENGTH) throw bad('too long');
  const match = FORM.exec(Buffer.from(token, 'base64url').toString());
  const startedAt = Date.parse(match?.[1] ?? '');
  const sandboxId = match?.[2];
  if (sandboxId === undefined || Number.isNaN(startedAt)) throw bad('not a token of this list');
  if ((match?.[3] === undefined ? 'desc' : 'asc') !== order) throw bad('it belongs to a list in the other order');
  return { startedAt, sandboxId, order };
}
