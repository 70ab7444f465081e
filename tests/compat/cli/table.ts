import type { CompatHost } from '../support/host.ts';
import type { Column, Table } from '../support/scenario.ts';
import { CliBed } from './bed.ts';
import { commands } from './commands.ts';
import { endings, sandboxes, snapshots } from './sandboxes.ts';

const VERSION = '2.19.0';

type Way = (host: CompatHost) => Record<string, string>;

export function cliTable(): Table<CliBed> {
  const column = (title: string, name: string, always: boolean, way: Way): Column<CliBed> => ({
    title: `${VERSION}, ${title}`,
    version: VERSION,
    always,
    open: (host) => new CliBed(host, name, way(host)),
    close: (bed) => bed.close(),
  });
  return {
    client: '@e2b/cli',
    intro: 'The command line program `e2b`, from npm, with `E2B_API_KEY` and one of two ways to lead it to the node.',
    groups: [sandboxes, commands, snapshots, endings],
    columns: [
      column('E2B_API_URL + E2B_SANDBOX_URL', 'cli-urls', true, ({ daemon: { url } }) => {
        return { E2B_API_URL: url, E2B_SANDBOX_URL: url };
      }),
      column('E2B_DOMAIN', 'cli-domain', false, ({ domain }) => ({ E2B_DOMAIN: domain })),
    ],
  };
}
