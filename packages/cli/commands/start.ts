import { type Command, Option } from 'commander';
import type { ControlPlane, SandboxInfo } from '../client/control-plane.ts';
import { openControlPlane, openEnvd } from '../client/session.ts';
import { CliError } from '../output/cli-error.ts';
import { shellExitCode } from '../terminal/exec-session.ts';
import { terminalSession } from '../terminal/shell-session.ts';
import { type DriveFlag, driveOption } from './drive-option.ts';
import { envOption, given, globalFlags, metadataOption, parseWhole, timeoutOption } from './options.ts';

interface StartFlags {
  readonly detach?: boolean;
  readonly timeout: number;
  readonly env: Record<string, string>;
  readonly metadata: Record<string, string>;
  readonly internet: boolean;
}

interface ColdFlags {
  readonly cold?: boolean;
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
  readonly drive: readonly DriveFlag[];
}

export function registerStart(program: Command): void {
  program
    .command('start')
    .summary('start a sandbox and open a shell in it')
    .description(
      'Starts a sandbox from a template, or with --cold from an image, which is pulled where it is not here. With -d it prints the id and returns; else it opens a shell, and the sandbox ' +
        'lives on afterwards until its time is over.',
    )
    .argument('<template>', 'id or alias of a template')
    .option('-d, --detach', 'print the id and return')
    .addOption(timeoutOption())
    .addOption(envOption())
    .addOption(metadataOption())
    .option('--no-internet', 'no network access from the sandbox')
    .option('--cold', 'boot an image of a registry, named in place of the template')
    .addOption(new Option('--cpu <count>', 'CPUs; with --cold').argParser(parseWhole))
    .addOption(new Option('--memory <MiB>', 'memory; with --cold').argParser(parseWhole))
    .addOption(new Option('--disk <MiB>', 'size of the disk; with --cold').argParser(parseWhole))
    .addOption(driveOption())
    .action(async (template: string, flags: StartFlags & ColdFlags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const sandbox =
        flags.cold === true ? await startCold(api, template, flags) : await startWarm(api, template, flags);
      console.log(sandbox.sandboxID);
      if (flags.detach === true) return;
      const envd = await openEnvd(api, sandbox);
      process.exitCode = shellExitCode(await terminalSession(api, sandbox.sandboxID, envd, { envs: {} }));
      console.error(`the sandbox lives on: aenv connect ${sandbox.sandboxID} | aenv rm ${sandbox.sandboxID}`);
    });
}

async function startWarm(api: ControlPlane, template: string, flags: StartFlags & ColdFlags): Promise<SandboxInfo> {
  const { cpu, memory, disk } = flags;
  if (cpu !== undefined || memory !== undefined || disk !== undefined) {
    throw new CliError('sizes belong to the template', 'Use --cold with an image, or `aenv pull` with sizes.', 2);
  }
  if (flags.drive.length > 0)
    throw new CliError('drives belong to sandboxes of images', 'Use --cold with an image.', 2);
  return await startSandbox(api, template, flags);
}

async function startCold(api: ControlPlane, image: string, flags: StartFlags & ColdFlags): Promise<SandboxInfo> {
  return await api.createCold({
    ...{ image, secure: true, timeout: flags.timeout, envVars: flags.env, metadata: flags.metadata },
    ...given({ cpuCount: flags.cpu, memoryMB: flags.memory, diskSizeMB: flags.disk }),
    ...(flags.internet ? {} : { allowInternetAccess: false }),
    ...(flags.drive.length === 0 ? {} : { attachedDrives: flags.drive }),
  });
}

export async function startSandbox(
  api: ControlPlane,
  template: string,
  flags: Omit<StartFlags, 'detach'>,
): Promise<SandboxInfo> {
  return await api.create({
    templateID: template,
    timeout: flags.timeout,
    envVars: flags.env,
    metadata: flags.metadata,
    ...(flags.internet ? {} : { allow_internet_access: false }),
  });
}
