import { startEnvd } from './server/envd.ts';
import { describeError, stderrLog } from './server/log.ts';
import { GUEST_OPTIONS } from './server/options.ts';

export { startEnvd };

/** envd in the guest. Whatever was not foreseen ends it, and init starts it again: its state is in a file. */
export function main(): void {
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);
  process.umask(0o022);
  startEnvd(GUEST_OPTIONS).then((envd) => {
    stderrLog('info', 'envd listens', { port: envd.port, uptimeMs: Math.round(process.uptime() * 1000) });
  }, die);
}

function die(error: unknown): void {
  stderrLog('error', 'envd ends', { error: describeError(error) });
  process.exit(1);
}
