import {
  GUEST_EVENTS_MAX,
  GUEST_PROGRAM_MAX,
  type GuestReport,
  HOST_SECRET_HEADER,
  OBSERVE_PATH,
} from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { z } from 'zod';
import { exchange, jsonOf } from '../envd-client/request.ts';

/** Asks the envd of a guest what has happened since a cursor. */
export type AskGuest = (
  guest: { readonly address: string; readonly hostSecret: string },
  cursor: string,
  signal: AbortSignal,
) => Promise<GuestReport>;

const CONNECT_MS = 2_000;
/** A guest that is busy with all its cores answers late, and late is better than never. */
const ANSWER_MS = 20_000;
const MAX_ANSWER = 1024 * 1024;
const MAX_CURSOR = 100;

const size = z.int().min(0);
const text = (max: number) => z.string().max(max);

/** A guest is hostile: what it sends is bounded in every member. */
const Report = z.object({
  cursor: text(MAX_CURSOR),
  lost: z.int().min(0),
  metrics: z.object({
    cpu_count: z.int().min(0).max(4096),
    cpu_used_pct: z.number().min(0).max(100),
    mem_total: size,
    mem_used: size,
    mem_cache: size,
    disk_used: size,
    disk_total: size,
  }),
  events: z
    .array(
      z.object({
        kind: z.enum(['start', 'end']),
        age: z.number().min(0),
        pid: z.int().min(0),
        program: text(GUEST_PROGRAM_MAX),
        args: z.int().min(0),
        status: text(64).exactOptional(),
      }),
    )
    .max(GUEST_EVENTS_MAX),
});

/**
 * @throws AenvError `internal` when the answer is not a report; the error of the socket, of the limits, or the signal's
 *   reason
 */
export const askGuestOverTcp: AskGuest = async ({ address, hostSecret }, cursor, signal) => {
  const answer = await exchange(address, ENVD_PORT, {
    method: 'GET',
    path: `${OBSERVE_PATH}?after=${encodeURIComponent(cursor)}`,
    headers: { [HOST_SECRET_HEADER]: hostSecret },
    connectTimeoutMs: CONNECT_MS,
    timeoutMs: ANSWER_MS,
    maxAnswerBytes: MAX_ANSWER,
    signal,
  });
  if (answer.status !== 200) throw new AenvError('internal', `envd answered ${answer.status} to ${OBSERVE_PATH}`);
  const parsed = Report.safeParse(jsonOf(answer.text));
  if (!parsed.success) throw new AenvError('internal', 'envd sent no report', { cause: parsed.error });
  return parsed.data;
};
