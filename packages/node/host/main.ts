/** The commands of this host, `aenv up`, `down`, `doctor`, `cert`, `selftest` and `storage`: they run without a daemon. The launcher starts this file. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { type HostCommand, parseCommand, UsageError } from './arguments.ts';
import { cert } from './cert/cert.ts';
import { doctor } from './doctor/doctor.ts';
import { hostMends } from './doctor/host-mends.ts';
import { hostProbes } from './doctor/host-probes.ts';
import { down } from './down.ts';
import { selftestRestore } from './selftest/selftest.ts';
import { prepareHost } from './setup/prepare.ts';
import { processOutput as output, printError } from './terminal/output.ts';
import { Progress } from './terminal/progress.ts';
import { up } from './up.ts';
import { ALL_USAGE, HOST_USAGE } from './usage.ts';

/** Ctrl-C, or a service manager that gave up. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const DAEMON = fileURLToPath(new URL('../main.ts', import.meta.url));

try {
  process.exitCode = await main(parseCommand(process.argv.slice(2)));
} catch (error) {
  if (error instanceof Interrupted) {
    output.err('aenv: interrupted; what was done so far is kept');
    process.exitCode = 130;
  } else if (error instanceof UsageError) {
    output.err(`aenv: ${error.message}`);
    output.err(error.command === undefined ? ALL_USAGE : HOST_USAGE[error.command]);
    process.exitCode = 2;
  } else {
    printError(output, error);
    process.exitCode = 1;
  }
}

async function main(command: HostCommand): Promise<number> {
  if (command.name === 'help') {
    output.out(command.of === undefined ? ALL_USAGE : HOST_USAGE[command.of]);
    return 0;
  }
  const env = daemonEnvironment(command);
  const config = loadConfig({ env });
  switch (command.name) {
    case 'up':
      await runUp(config, env, command.foreground);
      return 0;
    case 'down':
      await down(config, command.timeoutSeconds, output);
      return 0;
    case 'cert':
      await cert({
        ...{ config, output, signal: new AbortController().signal },
        ...(command.domain === undefined ? {} : { domain: command.domain }),
        ...(command.out === undefined ? {} : { out: resolve(command.out) }),
      });
      return 0;
    case 'selftest':
      return await runSelftest(config, env, command.json);
    case 'storage': {
      const { storage } = await import('./storage/storage.ts');
      return await storage(command, config, env, output);
    }
    case 'doctor':
      return await runDoctor(config, command.fix, command.json);
  }
}

/** Flags reach the daemon the way that everything else does, as variables. */
function daemonEnvironment(command: Exclude<HostCommand, { name: 'help' }>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...(command.config === undefined ? {} : { AENV_CONFIG: resolve(command.config) }),
    ...(command.name === 'up' && command.listen !== undefined ? { AENV_LISTEN: command.listen } : {}),
  };
}

async function runUp(config: Config, env: NodeJS.ProcessEnv, foreground: boolean): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort(new Interrupted());
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const uid = process.getuid?.() ?? -1;
  await up({
    ...{ config, foreground, env, output, uid },
    signal: interrupted.signal,
    entry: DAEMON,
    prepare: async (...args) => {
      await prepareHost(...args);
      if (!foreground) return;
      // From here on signals are the daemon's own business.
      process.off('SIGINT', interrupt);
      process.off('SIGTERM', interrupt);
    },
  });
}

async function runSelftest(config: Config, env: NodeJS.ProcessEnv, json: boolean): Promise<number> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort(new Interrupted());
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const { signal } = interrupted;
  return (await selftestRestore({ config, env, json, output, signal, entry: DAEMON })) ? 0 : 1;
}

async function runDoctor(config: Config, fix: boolean, json: boolean): Promise<number> {
  const context = {
    config,
    probes: hostProbes(config),
    mends: hostMends(config, new Progress(output).logger('doctor'), new AbortController().signal),
  };
  return (await doctor(context, { fix, json, output })) ? 0 : 1;
}
