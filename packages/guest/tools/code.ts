import { run } from '@aenv/platform/process/run.ts';

const TIMEOUT_MS = 60 * 1000;

// The same bundle gives the same code, so that drives of the same inputs are the same on every host.
const FLAGS = ['--hash-seed=1'];

/**
 * Has a program make the engine's code of a bundle.
 * @param engine executable of the runtime of the guests, and the engine's flags there
 * @param compile the program's file, which takes the bundle and the file to be written
 * @throws AenvError `host_command_failed`
 */
export async function makeCode(
  engine: readonly [executable: string, ...flags: string[]],
  compile: string,
  [bundle, target]: readonly [bundle: string, target: string],
  signal?: AbortSignal,
): Promise<void> {
  await run([...engine, ...FLAGS, compile, bundle, target], {
    timeoutMs: TIMEOUT_MS,
    ...(signal === undefined ? {} : { signal }),
  });
}
