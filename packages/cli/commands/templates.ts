import { Argument, type Command } from 'commander';
import type { TemplateInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { printList } from '../output/format.ts';
import { followBuild } from './follow-build.ts';
import { globalFlags, outputOption } from './options.ts';
import { registerTemplateAdmin } from './template-admin.ts';

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
  registerTemplateAdmin(template);
  template
    .command('build')
    .summary('build a template that comes with the server')
    .description(
      'Builds a template that comes with the server, for the first time or anew after an update. What is in the cache ' +
        'already is used; a build that is under way is joined.',
    )
    .addArgument(new Argument('<name>', 'name of the template').choices(['code-interpreter']))
    .action(async (name: string, _flags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const ref = await api.buildTemplate(name);
      await followBuild(api, ref);
      console.log(ref.templateID);
    });
}

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
