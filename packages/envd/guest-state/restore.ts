import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type FreezeAnswer,
  HOOK_FOLDERS,
  type HooksAnswer,
  type UnfreezeAnswer,
} from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { hooksIn } from '../hooks/folder.ts';
import { sendJson } from '../server/answer.ts';
import { readJson } from '../server/body.ts';
import type { EnvdContext } from '../server/context.ts';
import { parseEvent, parseTimestamp } from './init-request.ts';
import { isRecord } from './state.ts';

const BODY_MAX = 4096;
const HOOKS_MAX_MS = 3_600_000;

/** What stands around a capture: programs stop before it, and go on after it. Only for the host; the router sees to that. */
export class RestoreHandler {
  readonly #context: EnvdContext;

  constructor(context: EnvdContext) {
    this.#context = context;
  }

  async freeze(_request: IncomingMessage, response: ServerResponse): Promise<void> {
    const frozen = await this.#context.options.system.freeze();
    sendJson(response, 200, { frozen } satisfies FreezeAnswer);
  }

  async unfreeze(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = process.hrtime.bigint();
    const { system } = this.#context.options;
    const { timestamp, event, stay = false } = await readRecord(request);
    if (timestamp !== undefined && typeof timestamp !== 'string') {
      throw new AenvError('invalid_request', 'timestamp must be a string');
    }
    if (typeof stay !== 'boolean') throw new AenvError('invalid_request', 'stay must be a boolean');
    const hooks = event === undefined ? 0 : hooksIn(HOOK_FOLDERS[parseEvent(event)]).length;
    // In this order, without a way back and forth between the two.
    const steps: Promise<unknown>[] = [];
    if (timestamp !== undefined) {
      const time = { seconds: parseTimestamp(timestamp), at, port: request.socket.remotePort ?? 0 };
      const afterInit = stay || event !== undefined;
      if (!afterInit || Number(time.seconds) > secondsAt(at)) steps.push(system.renew({ time }));
    }
    if (!stay) steps.push(system.release({ thaw: true }));
    await Promise.all(steps);
    sendJson(response, 200, { hooks } satisfies UnfreezeAnswer);
  }

  async hooks(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readRecord(request);
    const event = parseEvent(body.event);
    const { timeoutMs } = body;
    if (typeof timeoutMs !== 'number' || !(timeoutMs > 0 && timeoutMs <= HOOKS_MAX_MS)) {
      throw new AenvError('invalid_request', `timeoutMs must be a number up to ${HOOKS_MAX_MS}`);
    }
    const { runHooks } = await import('../hooks/run.ts');
    const hooks = await runHooks(this.#context, HOOK_FOLDERS[event], { event, timeoutMs });
    sendJson(response, 200, { hooks } satisfies HooksAnswer);
  }
}

/** By the clock as it is set, the time at a moment of the monotonic one, since the epoch. */
function secondsAt(at: bigint): number {
  return (Date.now() - Number(process.hrtime.bigint() - at) / 1e6) / 1000;
}

async function readRecord(request: IncomingMessage): Promise<Record<string, unknown>> {
  const body = (await readJson(request, BODY_MAX)) ?? {};
  if (!isRecord(body)) throw new AenvError('invalid_request', 'the body must be a JSON object');
  return body;
}
