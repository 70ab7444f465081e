import type { Command } from 'commander';
import type { SnapshotInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { chooseFormat, duration, printList } from '../output/format.ts';
import { formatTable, printable } from '../output/table.ts';
import { forEachNamed } from './for-each.ts';
import { given, globalFlags, outputOption } from './options.ts';

/** `snapshot create`, `snapshot ls`, `snapshot get`, `snapshot rm`, `snapshot verify`. */
export function registerSnapshots(program: Command): void {
  const snapshot = program.command('snapshot').alias('snapshots').summary('kept states of sandboxes, to start from');
  snapshot
    .command('create')
    .summary('keep a running sandbox as a snapshot')
    .description(
      'Keeps memory, processes and disk of a running sandbox, which goes on, and prints what `aenv start` takes to start ' +
        'others from there. A name that another snapshot has moves to the new one.',
    )
    .argument('<id>', 'id of the sandbox')
    .option('--name <name>', 'name, namespace/name or namespace/name:tag')
    .action(async (id: string, flags: { name?: string }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      console.log((await api.takeSnapshot(id, flags.name)).snapshotID);
    });

  snapshot
    .command('ls')
    .alias('list')
    .summary('list snapshots')
    .option('--sandbox <id>', 'only those that were taken of this sandbox')
    .option('--name <name>', 'only those of this name, with a tag or with any')
    .addOption(outputOption())
    .action(async (flags: { sandbox?: string; name?: string; output?: string }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      const query = given({ sandboxID: flags.sandbox, name: flags.name }) as Record<string, string>;
      printList(await api.snapshots(query), LISTING, flags.output);
    });

  snapshot
    .command('get')
    .summary('show one snapshot')
    .argument('<snapshot>', 'id or name')
    .addOption(outputOption())
    .action(async (name: string, flags: { output?: string }, command: Command) => {
      const info = await (await openControlPlane(globalFlags(command))).snapshot(name);
      if (chooseFormat(flags.output, process.stdout.isTTY === true) === 'json') {
        console.log(JSON.stringify(info, null, 2));
        return;
      }
      const rows = Object.entries(info).map(([key, value]) => [key, String(value)]);
      console.log(formatTable(['FIELD', 'VALUE'], rows));
    });

  snapshot
    .command('rm')
    .alias('delete')
    .summary('remove snapshots that no sandbox uses')
    .argument('<snapshot...>', 'ids or names')
    .action(async (names: string[], _flags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      await forEachNamed(names, async (name) => {
        // Templates go by the same route; what has no snapshot of this name is left alone.
        await api.removeTemplate((await api.snapshot(name)).templateID);
        console.log(name);
      });
    });

  snapshot
    .command('verify')
    .summary('read every byte of a snapshot and compare')
    .description(
      'Reads all that a snapshot consists of and compares it with what was written. Exits with 1 if a byte is wrong.',
    )
    .argument('<snapshot>', 'id or name')
    .addOption(outputOption())
    .action(async (name: string, flags: { output?: string }, command: Command) => {
      const found = await (await openControlPlane(globalFlags(command))).verifySnapshot(name);
      if (found.problems.length > 0) process.exitCode = 1;
      if (chooseFormat(flags.output, process.stdout.isTTY === true) === 'json') {
        console.log(JSON.stringify(found, null, 2));
        return;
      }
      for (const { artefact, path, message } of found.problems) {
        console.error(`aenv: ${printable(artefact)}: ${printable(message)} (${printable(path)})`);
      }
      const verdict = found.problems.length === 0 ? 'all as it was written' : `${found.problems.length} problems`;
      console.log(`${(found.checkedBytes / 2 ** 20).toFixed(1)} MiB read, ${verdict}`);
    });
}

const LISTING = {
  head: ['SNAPSHOT', 'ID', 'SANDBOX', 'AGE', 'CPU', 'MEMORY', 'DISK'],
  row: (snapshot: SnapshotInfo) => [
    snapshot.snapshotID,
    snapshot.templateID,
    snapshot.sandboxID,
    duration(Date.now() - Date.parse(snapshot.createdAt)),
    String(snapshot.cpuCount),
    `${snapshot.memoryMB} MiB`,
    `${snapshot.diskSizeMB} MiB`,
  ],
};
