import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, type Command } from 'commander';
import type { ControlPlane, TemplateInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { CliError } from '../output/cli-error.ts';
import { printList } from '../output/format.ts';
import { printable } from '../output/table.ts';
import { globalFlags, outputOption } from './options.ts';

export function registerTemplates(program: Command): void {
  const template = program.command('template').alias('templates').summary('templates, what sandboxes start from');
  template
    .command('ls')
    .alias('list')
    .summary('list templates')
    .addOption(outputOption())
    .action(async (flags: { output?: string }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      printList(await api.templates(), LISTING, flags.output);
    });
  template
    .command('build')
    .summary('build a template that comes with the server')
    .description(
      'Builds a template that comes with the server, for the first time or anew after an update. What is in the cache ' +
        'already is used; a build that is under way is joined.',
    )
    .addArgument(new Argument('<name>', 'name of the template').choices(['code-interpreter']))
    .action(async (name: string, _flags, command: Command) => {
      await build(await openControlPlane(globalFlags(command)), name);
    });
}

/** Follows a build to its end; its log goes to standard error, the template's id to standard output. */
async function build(api: ControlPlane, name: string): Promise<void> {
  const ref = await api.buildTemplate(name);
  for (let read = 0; ; ) {
    const { status, logEntries, reason } = await api.buildStatus(ref, read);
    for (const { level, message } of logEntries) {
      console.error(visible(level === 'info' ? message : `${level}: ${message}`));
    }
    read += logEntries.length;
    if (status === 'error') throw new CliError(`the build failed: ${visible(reason?.message ?? 'no reason given')}`);
    if (status === 'ready' && logEntries.length === 0) break;
    if (logEntries.length === 0) await sleep(POLL_MS);
  }
  console.log(ref.templateID);
}

/** Text of the server with its lines, and without what a terminal would take for commands. */
const visible = (text: string) => text.split('\n').map(printable).join('\n');

/** How long to wait for news of a build. */
const POLL_MS = 500;

const LISTING = {
  head: ['ID', 'ALIASES', 'CPU', 'MEMORY', 'DISK', 'STARTS', 'UPDATED'],
  row: (template: TemplateInfo) => [
    template.templateID,
    template.aliases.join(','),
    String(template.cpuCount),
    `${template.memoryMB} MiB`,
    `${template.diskSizeMB} MiB`,
    String(template.spawnCount),
    template.updatedAt,
  ],
};
