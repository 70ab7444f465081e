import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Seconds after which a refusal that is a matter of time may have passed; clients wait for them on their own. */
const RETRY_AFTER = '1';

/** The JSON answer for an error. Server faults carry the request id, which leads to their log lines. */
export function errorAnswer(error: AenvError, requestId: string, headers: Record<string, string> = {}): Response {
  const body = error.status >= 500 ? { ...error.toBody(), request_id: requestId } : error.toBody();
  const wait = error.status === 429 || error.status === 503 ? { 'Retry-After': RETRY_AFTER } : {};
  return Response.json(body, { status: error.status, headers: { ...wait, ...headers } });
}
