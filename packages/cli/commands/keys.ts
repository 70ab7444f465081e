import type { Command } from 'commander';
import type { ApiKeyInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { chooseFormat, printList } from '../output/format.ts';
import { globalFlags, outputOption } from './options.ts';

/** `key create`, `key ls`, `key revoke`. */
export function registerKeys(program: Command): void {
  const key = program.command('key').alias('keys').summary('API keys of the server');
  key
    .command('create')
    .summary('make a new API key')
    .description('Makes a new API key and prints it. It is shown this once; the server keeps no copy.')
    .argument('<name>', 'name of the key, for people')
    .addOption(outputOption())
    .action(async (name: string, flags: { output?: string }, command: Command) => {
      const format = flags.output === undefined ? 'table' : chooseFormat(flags.output, false);
      const created = await (await openControlPlane(globalFlags(command))).createKey(name);
      if (format === 'json') {
        console.log(JSON.stringify(created, null, 2));
        return;
      }
      // The key alone goes to standard output, so that it can be put into a variable.
      console.log(created.key);
      console.error(`id ${created.id}; the key is not shown again`);
    });

  key
    .command('ls')
    .alias('list')
    .summary('list API keys')
    .addOption(outputOption())
    .action(async (flags: { output?: string }, command: Command) => {
      printList(await (await openControlPlane(globalFlags(command))).keys(), LISTING, flags.output);
    });

  key
    .command('revoke')
    .alias('rm')
    .summary('make an API key invalid')
    .argument('<key-id>', 'id of the key')
    .action(async (id: string, _flags, command: Command) => {
      await (await openControlPlane(globalFlags(command))).revokeKey(id);
    });
}

const LISTING = {
  head: ['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED'],
  row: ({ id, name, mask, createdAt, lastUsed }: ApiKeyInfo) => [
    id,
    name,
    `${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`,
    createdAt,
    lastUsed ?? 'never',
  ],
};
