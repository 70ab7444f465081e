import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** The JSON answer for an error. Server faults carry the request id, which leads to their log lines. */
export function errorAnswer(error: AenvError, requestId: string, headers: Record<string, string> = {}): Response {
  const body = error.status >= 500 ? { ...error.toBody(), request_id: requestId } : error.toBody();
  return Response.json(body, { status: error.status, headers });
}
