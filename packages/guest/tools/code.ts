import { run } from '@aenv/platform/process/run.ts';

const TIMEOUT_MS = 60 * 1000;

// The same bundle gives the same code, so that drives of the same inputs are the same on every host.
const FLAGS = ['--hash-seed=1'];

/**
 * Has a program make the engine's code of a bundle.
 * @param executable the runtime of the guests
 * @param compile the program's file, which takes the bundle and the file to be written
 * @throws AenvError `host_command_failed`
 */
export async function makeCode(
  executable: string,
  compile: string,
  [bundle, target]: readonly [bundle: string, target: string],
  signal?: AbortSignal,
): Promise<void> {
  await run([executable, ...FLAGS, compile, bundle, target], {
    timeoutMs: TIMEOUT_MS,
    ...(signal === undefined ? {} : { signal }),
  });
}
