import { type ProcessEvent, ProcessEventSchema } from '@aenv/contracts/envd/gen/process_pb.ts';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import type { RunningProcess } from './running-process.ts';
import type { CloseReason, OutputEvent } from './subscription.ts';

// Seconds between signs of life when the client does not say.
const KEEPALIVE_DEFAULT = 90;

/**
 * The events of a process for one client: `start` at once, output, `end`; `keepalive` in between when there was nothing
 * for as long as the client's Keepalive-Ping-Interval says. The client may leave at any time, the process goes on.
 * @param deadlineMs when given, the process is killed after this time, whether the client is still there or not
 */
export async function* streamEvents(
  process: RunningProcess,
  context: HandlerContext,
  deadlineMs?: number,
): AsyncIterable<ProcessEvent> {
  const subscription = process.subscribe();
  const leave = () => subscription.close('left');
  if (deadlineMs !== undefined) process.killAfter(deadlineMs, () => subscription.close('deadline'));
  context.signal.addEventListener('abort', leave, { once: true });
  if (context.signal.aborted) leave();
  try {
    yield event({ event: { case: 'start', value: { pid: process.pid } } });
    const idleMs = keepaliveMs(context.requestHeader.get('keepalive-ping-interval'));
    for (let next = await subscription.next(idleMs); next !== undefined; next = await subscription.next(idleMs)) {
      yield next === 'idle' ? event({ event: { case: 'keepalive', value: {} } }) : toMessage(next);
    }
    if (subscription.closed !== 'ended') throw closeError(subscription.closed, context, process.pid, deadlineMs);
  } finally {
    context.signal.removeEventListener('abort', leave);
    leave();
  }
}

function toMessage(next: OutputEvent): ProcessEvent {
  if (next.kind === 'end') return event({ event: { case: 'end', value: next.report } });
  return event({ event: { case: 'data', value: { output: { case: next.kind, value: next.bytes } } } });
}

function event(init: MessageInitShape<typeof ProcessEventSchema>): ProcessEvent {
  return create(ProcessEventSchema, init);
}

function closeError(
  reason: CloseReason | undefined,
  context: HandlerContext,
  pid: number,
  deadlineMs: number | undefined,
): ConnectError {
  if (reason === 'stalled') {
    return new ConnectError(`output of process ${pid} was not read for too long`, Code.ResourceExhausted);
  }
  // The call's own timer may be a moment ahead of the process's. For a client that only attached, it is the only one.
  const error = ConnectError.from(context.signal.reason, Code.Canceled);
  if (deadlineMs !== undefined && (reason === 'deadline' || error.code === Code.DeadlineExceeded)) {
    return new ConnectError(`the deadline of process ${pid} has passed, it was killed`, Code.DeadlineExceeded);
  }
  return error;
}

function keepaliveMs(value: string | null): number {
  const seconds = value !== null && /^\d{1,6}$/.test(value.trim()) ? Number(value) : 0;
  return Math.max(1, seconds || KEEPALIVE_DEFAULT) * 1000;
}
