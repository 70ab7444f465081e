import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** The last row of a page; the next one begins right after it. */
export interface PageCursor {
  readonly at: Date;
  readonly id: string;
}

/**
 * The opaque token of a page: base64url of `<RFC 3339>__<id>__<order>`. The order is part of it, so that a token cannot
 * be continued the other way round.
 */
export function encodePageToken(cursor: PageCursor, order: 'asc' | 'desc'): string {
  return Buffer.from(`${cursor.at.toISOString()}__${cursor.id}__${order}`).toString('base64url');
}

/** @throws AenvError `invalid_request` */
export function decodePageToken(token: string, order: 'asc' | 'desc'): PageCursor {
  const text = token.length <= 256 ? Buffer.from(token, 'base64url').toString() : '';
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)__([a-z0-9]{1,64})__(asc|desc)$/.exec(text);
  const at = new Date(match?.[1] ?? Number.NaN);
  const id = match?.[2];
  if (id === undefined || Number.isNaN(at.getTime())) {
    throw new AenvError('invalid_request', 'query.nextToken: not a token of this server');
  }
  if (match?.[3] !== order) {
    throw new AenvError('invalid_request', `query.nextToken: belongs to a list with order ${match?.[3]}`);
  }
  return { at, id };
}
