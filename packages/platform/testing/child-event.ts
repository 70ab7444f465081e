import type { ChildProcess } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';

/**
 * The next event of a child process, of its output or of its channel. Who waits for one alone waits for ever when the
 * process ends early.
 * @throws Error when the process ends before the event
 */
export async function childEvent(child: ChildProcess, source: EventEmitter, event: string): Promise<unknown[]> {
  const end = new AbortController();
  const onClose = () => end.abort();
  child.once('close', onClose);
  try {
    return await once(source, event, { signal: end.signal });
  } catch (error) {
    if (!end.signal.aborted) throw error;
    const how = child.signalCode ?? `code ${child.exitCode}`;
    throw new Error(`${child.spawnfile} ended with ${how} before its ${event}`);
  } finally {
    child.off('close', onClose);
  }
}
