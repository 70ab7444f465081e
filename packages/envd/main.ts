import { startEnvd } from './server/envd.ts';
import { describeError, stderrLog } from './server/log.ts';
import { GUEST_OPTIONS } from './server/options.ts';

/** So that the answer to the host is out before. */
const WARM_UP_MS = 20;

// envd in the guest. Whatever was not foreseen ends it, and init starts it again: its state is in a file.
function die(error: unknown): void {
  stderrLog('error', 'envd ends', { error: describeError(error) });
  process.exit(1);
}

process.on('uncaughtException', die);
process.on('unhandledRejection', die);
process.umask(0o022);

startEnvd(GUEST_OPTIONS).then(async (envd) => {
  stderrLog('info', 'envd listens', { port: envd.port, uptimeMs: Math.round(performance.now()) });
  // Loading takes a while, and until the host has set up this guest it waits for every millisecond of it.
  await envd.initialised;
  setTimeout(() => {
    envd.warmUp().catch(die);
  }, WARM_UP_MS).unref();
}, die);
