import type { Command } from 'commander';
import type { TemplateInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { printList } from '../output/format.ts';
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
