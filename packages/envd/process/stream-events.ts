import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Call } from '../rpc/call.ts';
import { keepaliveMs } from '../rpc/keepalive.ts';
import type { EventMessage } from './encode-event.ts';
import type { RunningProcess } from './running-process.ts';
import type { CloseReason, OutputEvent } from './subscription.ts';

/** What happens at the client's deadline: the process is killed, client or not; or only the listening ends. */
export type DeadlineRule = 'kills' | 'detaches';

/**
 * The events of a process for one client: `start` at once, output, `end`; `keepalive` in between when there was nothing
 * for as long as the client's Keepalive-Ping-Interval says. The client may leave at any time, the process goes on.
 */
export async function* streamEvents(
  process: RunningProcess,
  call: Call,
  rule: DeadlineRule,
): AsyncGenerator<EventMessage> {
  const subscription = process.subscribe();
  const leave = () => subscription.close('left');
  const expire = () => subscription.close('deadline');
  const deadline = call.timeoutMs();
  let timer: NodeJS.Timeout | undefined;
  if (deadline !== undefined) {
    if (rule === 'kills') process.killAfter(deadline, expire);
    else timer = setTimeout(expire, Math.max(0, deadline));
  }
  const { signal } = call;
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    yield { event: { event: { case: 'start', value: { pid: process.pid } } } };
    const idleMs = keepaliveMs(call);
    for (let next = await subscription.next(idleMs); next !== undefined; next = await subscription.next(idleMs)) {
      yield next === 'idle' ? { event: { event: { case: 'keepalive', value: {} } } } : toMessage(next);
    }
    if (subscription.closed !== 'ended') throw closeError(subscription.closed, process.pid, rule);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    leave();
  }
}

function toMessage(next: OutputEvent): EventMessage {
  if (next.kind === 'end') return { event: { event: { case: 'end', value: next.report } } };
  return { event: { event: { case: 'data', value: { output: { case: next.kind, value: next.bytes } } } } };
}

function closeError(reason: CloseReason | undefined, pid: number, rule: DeadlineRule): AenvError {
  switch (reason) {
    case 'stalled':
      return new AenvError('output_not_read', `output of process ${pid} was not read for too long`);
    case 'deadline':
      return rule === 'kills'
        ? new AenvError('process_deadline', `the deadline of process ${pid} has passed, it was killed`)
        : new AenvError('process_deadline', `the deadline of the call has passed, process ${pid} runs on`);
    default:
      return new AenvError('internal', 'the client has left');
  }
}
