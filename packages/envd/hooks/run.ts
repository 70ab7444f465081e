import { join } from 'node:path';
import { HOOK_OUTPUT_MAX, type HookResult, type HooksRequest } from '@aenv/contracts/envd/restore-api.ts';
import { buildEnvironment } from '../process/environment.ts';
import { describeExit } from '../process/exit-status.ts';
import { type Launched, launch } from '../process/launch.ts';
import type { EnvdContext } from '../server/context.ts';
import { hooksIn } from './folder.ts';

/** What a hook has printed is waited for so long, in `ms`, once it has ended: a program that it left behind may hold it. */
const DRAIN_MS = 100;

const ROOT = { name: 'root', uid: 0, gid: 0, home: '/root', groups: [0] } as const;

/**
 * Runs the hooks of an event one after the other, as root and with the variables of the sandbox. One that fails does not
 * keep the next one from running; when time is over, the one that runs is killed with its process group.
 */
export async function runHooks(
  context: EnvdContext,
  folder: string,
  { event, timeoutMs }: HooksRequest,
): Promise<HookResult[]> {
  const end = performance.now() + timeoutMs;
  const results: HookResult[] = [];
  for (const name of hooksIn(folder)) {
    const begin = performance.now();
    if (begin >= end) {
      results.push({ name, ok: false, status: 'not run: time is over', ms: 0, output: '' });
      continue;
    }
    const result = await runHook(context, join(folder, name), event, end - begin);
    results.push({ name, ...result, ms: Math.round(performance.now() - begin) });
  }
  return results;
}

async function runHook(
  { options, state }: EnvdContext,
  command: string,
  event: HooksRequest['event'],
  leftMs: number,
): Promise<Pick<HookResult, 'ok' | 'status' | 'output'>> {
  const { sandboxId = '', templateId = '' } = state.current;
  const request = { AENV_EVENT: event, AENV_SANDBOX_ID: sandboxId, AENV_TEMPLATE_ID: templateId };
  let hook: Launched;
  try {
    hook = await launch({
      ...{ native: options.native, command, args: [], user: ROOT, cwd: '/', stdin: false },
      environment: buildEnvironment({
        ...{ user: ROOT, request, terminal: false },
        sandbox: state.current.envVars,
        platform: state.platformEnvironment(),
      }),
    });
  } catch (error) {
    return { ok: false, status: error instanceof Error ? error.message : String(error), output: '' };
  }
  const output = new Tail(hook);
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    killGroup(hook.pid);
  }, leftMs);
  const exit = describeExit(await hook.exited.catch(() => ({ code: 255 })));
  clearTimeout(deadline);
  await output.ended();
  const status = late ? `killed after ${Math.round(leftMs)} ms, when time was over` : exit.status;
  return { ok: !late && exit.exited && exit.exitCode === 0, status, output: output.text };
}

/** The end of what a program prints. */
class Tail {
  text = '';
  readonly #streams: Launched['outputs'];
  readonly #over: Promise<unknown>;

  constructor({ outputs }: Launched) {
    this.#streams = outputs;
    this.#over = Promise.all(
      outputs.map(({ stream }) => {
        stream.setEncoding('utf8').on('data', (more: string) => {
          this.text = (this.text + more).slice(-HOOK_OUTPUT_MAX);
        });
        return new Promise<void>((resolve) => void stream.once('close', resolve));
      }),
    );
  }

  async ended(): Promise<void> {
    const timer = setTimeout(() => {
      for (const { stream } of this.#streams) stream.destroy();
    }, DRAIN_MS);
    await this.#over;
    clearTimeout(timer);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has just ended
  }
}
