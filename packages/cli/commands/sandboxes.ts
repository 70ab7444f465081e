import type { Command } from 'commander';
import type { SandboxInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { chooseFormat, duration, printList } from '../output/format.ts';
import { formatTable } from '../output/table.ts';
import { forEachNamed } from './for-each.ts';
import { globalFlags, metadataOption, outputOption, parseSeconds } from './options.ts';

/** `ls`, `get`, `timeout`, `rm`. */
export function registerSandboxes(program: Command): void {
  program
    .command('ls')
    .alias('list')
    .summary('list sandboxes')
    .addOption(metadataOption())
    .option('--template <name>', 'only those of this template')
    .addOption(outputOption())
    .action(async (flags: ListFlags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const query = new URLSearchParams();
      // Keys and values are URI-encoded inside the form: the API decodes the query, then the form, then each of them.
      const form = new URLSearchParams(
        Object.entries(flags.metadata).map(([key, value]): [string, string] => [
          encodeURIComponent(key),
          encodeURIComponent(value),
        ]),
      );
      if (form.size > 0) query.set('metadata', form.toString());
      if (flags.template !== undefined) query.set('template', flags.template);
      printList(await api.list(query), LISTING, flags.output);
    });

  program
    .command('get')
    .summary('show one sandbox')
    .argument('<id>', 'id of the sandbox')
    .addOption(outputOption())
    .action(async (id: string, flags: { output?: string }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const { envdAccessToken: _secret, ...info } = await api.get(id);
      if (chooseFormat(flags.output, process.stdout.isTTY === true) === 'json') {
        console.log(JSON.stringify(info, null, 2));
        return;
      }
      const rows = Object.entries(info).map(([key, value]) => [
        key,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]);
      console.log(formatTable(['FIELD', 'VALUE'], rows));
    });

  program
    .command('timeout')
    .summary('set how long a sandbox lives from now')
    .argument('<id>', 'id of the sandbox')
    .argument('<seconds>', 'seconds from now', parseSeconds)
    .action(async (id: string, seconds: number, _flags, command: Command) => {
      await (await openControlPlane(globalFlags(command))).setTimeout(id, seconds);
    });

  program
    .command('rm')
    .alias('delete')
    .summary('delete sandboxes')
    .argument('<id...>', 'ids of sandboxes')
    .action(async (ids: string[], _flags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      await forEachNamed(ids, async (id) => {
        await api.kill(id);
        console.log(id);
      });
    });
}

interface ListFlags {
  readonly metadata: Record<string, string>;
  readonly template?: string;
  readonly output?: string;
}

const LISTING = {
  head: ['ID', 'TEMPLATE', 'STATE', 'AGE', 'ENDS IN', 'CPU', 'MEMORY', 'METADATA'],
  row: (sandbox: SandboxInfo) => [
    sandbox.sandboxID,
    sandbox.alias ?? sandbox.templateID,
    sandbox.state ?? '',
    sandbox.startedAt === undefined ? '' : duration(Date.now() - Date.parse(sandbox.startedAt)),
    // The time of a paused one stands still.
    sandbox.endAt === undefined || sandbox.state === 'paused' ? '' : duration(Date.parse(sandbox.endAt) - Date.now()),
    String(sandbox.cpuCount ?? ''),
    `${sandbox.memoryMB ?? ''} MiB`,
    Object.entries(sandbox.metadata ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
  ],
};
