import { type Command, Option } from 'commander';
import { openControlPlane } from '../client/session.ts';
import { CliError } from '../output/cli-error.ts';
import { followBuild } from './follow-build.ts';
import { given, globalFlags, parseSeconds, parseWhole } from './options.ts';

interface PullFlags {
  readonly name?: string;
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
  readonly startCmd?: string;
  readonly readyCmd?: string;
  readonly probe?: number;
  readonly timeout?: number;
  readonly detach?: boolean;
}

export function registerPull(program: Command): void {
  program
    .command('pull')
    .summary('make a template of an image of a registry')
    .description(
      'Makes a template of an OCI image. A template that has the name already gets a new build and keeps its id. ' +
        'Progress goes to standard error, the id of the template to standard output.',
    )
    .argument('<image>', 'NAME, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST')
    .option('--name <name>', 'name of the template, NAME or NAME:TAG; default: the last part of the name of the image')
    .addOption(new Option('--cpu <count>', 'CPUs of its sandboxes').argParser(parseWhole))
    .addOption(new Option('--memory <MiB>', 'memory of its sandboxes').argParser(parseWhole))
    .addOption(new Option('--disk <MiB>', 'size of the disk, sparse').argParser(parseWhole))
    .option('--start-cmd <command>', 'runs in every sandbox, as the user of the image')
    .option('--ready-cmd <command>', 'a sandbox is ready when it succeeds')
    .addOption(
      new Option('--probe <port>', 'a sandbox is ready when an HTTP server answers there')
        .argParser(parseWhole)
        .conflicts('readyCmd'),
    )
    .addOption(new Option('--timeout <seconds>', 'limit for the build').argParser(parseSeconds))
    .option('-d, --detach', 'print the ids of template and build, and return')
    .action(async (image: string, flags: PullFlags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const ref = await api.orderTemplate({
        name: flags.name ?? nameOf(image),
        ...given({ cpuCount: flags.cpu, memoryMB: flags.memory, diskSizeMB: flags.disk }),
      });
      await api.startBuild(ref, {
        fromImage: image,
        ...given({ startCmd: flags.startCmd, readyCmd: flags.readyCmd, timeoutSeconds: flags.timeout }),
        ...(flags.probe === undefined ? {} : { readyProbe: { port: flags.probe } }),
      });
      if (flags.detach === true) {
        console.log(`${ref.templateID} ${ref.buildID}`);
        return;
      }
      await followBuild(api, ref);
      console.log(ref.templateID);
    });
}

/** The last part of an image's name, without tag and digest, as the name of a template. */
export function nameOf(image: string): string {
  const [path = ''] = image.split('@');
  const [leaf = ''] = path.slice(path.lastIndexOf('/') + 1).split(':');
  const name = leaf
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  if (name === '') throw new CliError(`no name can be made of '${image}'`, 'Give one with --name.', 2);
  return name;
}
