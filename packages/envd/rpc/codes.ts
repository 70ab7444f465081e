import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ErrorCode } from '@aenv/contracts/errors/registry.ts';
import { describeError, type Log } from '../server/log.ts';

// https://connectrpc.com/docs/protocol/#error-codes
const HTTP_STATUS = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const;

/** An error code of Connect. */
export type RpcCode = keyof typeof HTTP_STATUS;

export interface RpcError {
  readonly code: RpcCode;
  readonly message: string;
}

// By status, because there are many codes of ours and few of Connect's.
const BY_STATUS: Readonly<Record<number, RpcCode>> = {
  400: 'invalid_argument',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'not_found',
  409: 'already_exists',
  413: 'resource_exhausted',
  429: 'resource_exhausted',
  501: 'unimplemented',
  503: 'unavailable',
  504: 'deadline_exceeded',
};

const EXCEPTIONS: Partial<Record<ErrorCode, RpcCode>> = { stdin_of_terminal: 'unknown' };

/** The HTTP status of a unary answer with this code. */
export function statusOf(code: RpcCode): number {
  return HTTP_STATUS[code];
}

/** The error as Connect clients get it. What nobody foresaw is logged, and the client learns only that it happened. */
export function toRpcError(error: unknown, log: Log): RpcError {
  const ours = AenvError.from(error);
  if (!(error instanceof AenvError) && ours.code === 'internal') {
    log('error', 'rpc failed', { error: describeError(error) });
  }
  return { code: EXCEPTIONS[ours.code] ?? BY_STATUS[ours.status] ?? 'internal', message: ours.message };
}
