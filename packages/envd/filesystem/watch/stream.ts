import type { WatchDirResponseSchema } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Call } from '../../rpc/call.ts';
import { keepaliveMs } from '../../rpc/keepalive.ts';
import type { Change } from './changes.ts';
import type { ToEvent } from './events.ts';
import type { ChangeSource } from './polled-watch.ts';

/**
 * The changes of a watched folder for one client: `start` at once, events in the speed of the client, `keepalive` in
 * between when there was nothing for as long as the client's Keepalive-Ping-Interval says. The source is closed at the end.
 * @throws AenvError `watch_deadline`; what the source throws
 */
export async function* streamChanges(
  source: ChangeSource,
  toEvent: ToEvent,
  call: Call,
): AsyncGenerator<MessageInitShape<typeof WatchDirResponseSchema>> {
  let expired = false;
  const leave = () => source.close();
  const deadline = call.timeoutMs();
  const timer = deadline === undefined ? undefined : setTimeout(expire, Math.max(0, deadline));
  function expire() {
    expired = true;
    source.close();
  }
  const { signal } = call;
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    yield { event: { case: 'start', value: {} } };
    const idleMs = keepaliveMs(call);
    const changes = source.changes()[Symbol.asyncIterator]();
    for (let next = nextOf(changes); ; ) {
      const result = await within(next, idleMs);
      if (result === 'idle') {
        yield { event: { case: 'keepalive', value: {} } };
        continue;
      }
      if (result.done === true) break;
      for (const change of result.value) yield { event: { case: 'filesystem', value: await toEvent(change) } };
      next = nextOf(changes);
    }
    if (expired) throw new AenvError('watch_deadline', 'the deadline of the call has passed');
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    source.close();
  }
}

function nextOf(changes: AsyncIterator<readonly Change[]>): Promise<IteratorResult<readonly Change[]>> {
  const next = changes.next();
  // The client may leave while it is on the way, and then nobody waits for it.
  next.catch(() => {});
  return next;
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | 'idle'> {
  let timer: NodeJS.Timeout | undefined;
  const idle = new Promise<'idle'>((resolve) => {
    timer = setTimeout(() => resolve('idle'), ms);
  });
  try {
    return await Promise.race([promise, idle]);
  } finally {
    clearTimeout(timer);
  }
}
