import type { Command } from 'commander';
import { openControlPlane } from '../client/session.ts';
import { chooseFormat } from '../output/format.ts';
import { formatTable } from '../output/table.ts';
import { forEachNamed } from './for-each.ts';
import { globalFlags, outputOption } from './options.ts';

/** `get` and `rm` of `aenv template`. */
export function registerTemplateAdmin(template: Command): void {
  template
    .command('get')
    .summary('show one template')
    .argument('<template>', 'id or alias')
    .addOption(outputOption())
    .action(async (name: string, flags: { output?: string }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const [info, tags] = await Promise.all([api.template(name), api.templateTags(name)]);
      if (chooseFormat(flags.output, process.stdout.isTTY === true) === 'json') {
        console.log(JSON.stringify({ ...info, tags }, null, 2));
        return;
      }
      const rows = Object.entries(info).map(([key, value]) => [
        key,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]);
      rows.push(['tags', tags.map(({ tag, buildID }) => `${tag} (${buildID})`).join(', ')]);
      console.log(formatTable(['FIELD', 'VALUE'], rows));
    });

  template
    .command('rm')
    .alias('delete')
    .summary('remove templates that no sandbox uses')
    .argument('<template...>', 'ids or aliases')
    .action(async (names: string[], _flags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      await forEachNamed(names, async (name) => {
        await api.removeTemplate(name);
        console.log(name);
      });
    });

  template
    .command('tag')
    .summary('have tags point at a version of a template')
    .argument('<target>', 'the version: NAME or NAME:TAG')
    .argument('<tag...>', 'tags that point there from now on')
    .action(async (target: string, tags: string[], _flags, command: Command) => {
      await (await openControlPlane(globalFlags(command))).tagTemplate(target, tags);
    });

  template
    .command('untag')
    .summary('remove tags of a template')
    .description('Removes tags. A version that has none left goes; sandboxes of it are not disturbed.')
    .argument('<template>', 'id or alias')
    .argument('<tag...>', 'tags')
    .action(async (name: string, tags: string[], _flags, command: Command) => {
      await (await openControlPlane(globalFlags(command))).untagTemplate(name, tags);
    });
}
