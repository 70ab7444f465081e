/** A thread that serves disks: answers the calls of the main thread, which waits for nothing else. */
import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { DiskThread } from './disk-thread.ts';
import { loadLayerSources } from './layer-sources.ts';
import type { ThreadCall, ThreadData, ThreadMessage } from './operations.ts';

const port = parentPort;
if (port === null) throw new Error('this is the code of a thread');

const send = (message: ThreadMessage) => port.postMessage(message);
const at =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (message: string, { error, ...fields }: Readonly<Record<string, unknown>> = {}) =>
    send({ kind: 'log', level, message, fields: error === undefined ? fields : { ...fields, error: describe(error) } });
const log: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
const data = workerData as ThreadData;
const { sources } = data;
// Loaded now, while everything can be read; used later.
const createSources = sources === undefined ? undefined : await loadLayerSources(sources.module);
const thread = new DiskThread(data, log, createSources);

port.on('message', ({ id, operation, args }: ThreadCall) => {
  void answer(id, async () => await thread[operation](args as never));
});
// Before the process becomes a user that may write there no more.
flushCompileCache();
send({ kind: 'ready' });

async function answer(id: number, work: () => Promise<unknown>): Promise<void> {
  try {
    send({ kind: 'result', id, result: await work() });
  } catch (error) {
    const { code, message, cause } = AenvError.from(error);
    if (code === 'internal') log.error('a call to a disk thread failed', { error: cause ?? error });
    send({ kind: 'error', id, code, message });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? (error.stack ?? error.message) : `${error.stack}\ncause: ${describe(error.cause)}`;
}
