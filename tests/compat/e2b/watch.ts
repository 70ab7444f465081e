import assert from 'node:assert/strict';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { Sandbox, SdkBed } from './bed.ts';

type Event = Parameters<Parameters<Sandbox['files']['watchDir']>[1]>[0];
type WatchOptions = Parameters<Sandbox['files']['watchDir']>[2];

/** Watches a new folder while `work` changes it, until `done` is content with what was told. */
async function watch(
  sandbox: Sandbox,
  folder: string,
  options: WatchOptions,
  work: () => Promise<unknown>,
  done: (events: readonly Event[]) => boolean,
): Promise<void> {
  await sandbox.files.makeDir(folder);
  const events: Event[] = [];
  const handle = await sandbox.files.watchDir(folder, (event) => void events.push(event), { timeoutMs: 0, ...options });
  try {
    await work();
    await until(() => done(events), { timeoutMs: 60_000, what: `events: ${JSON.stringify(events)}` });
  } finally {
    await handle.stop();
  }
}

const told = (events: readonly Event[], type: string, name: string) =>
  events.some((event) => event.type === type && event.name === name);

export const watching: Group<SdkBed> = {
  title: 'Watching folders',
  scenarios: [
    {
      name: 'watch a folder: created, written, renamed, changed, removed',
      async run(bed) {
        const sandbox = await bed.main();
        const { files } = sandbox;
        await watch(
          sandbox,
          'watch/flat',
          {},
          async () => {
            await files.write('watch/flat/a', 'x');
            await sandbox.commands.run('chmod 600 watch/flat/a');
            await files.rename('watch/flat/a', 'watch/flat/b');
            await files.remove('watch/flat/b');
          },
          (events) =>
            told(events, 'create', 'a') &&
            told(events, 'write', 'a') &&
            told(events, 'chmod', 'a') &&
            told(events, 'rename', 'a') &&
            told(events, 'remove', 'b'),
        );
      },
    },
    {
      name: 'watch recursively, folders made later among them',
      async run(bed) {
        const sandbox = await bed.main();
        await watch(
          sandbox,
          'watch/deep',
          { recursive: true },
          () => sandbox.files.write('watch/deep/new/sub/f', 'x'),
          (events) => told(events, 'create', 'new') && told(events, 'write', 'new/sub/f'),
        );
      },
    },
    {
      name: 'watch with the entry in each event',
      since: '2.45.0',
      async run(bed) {
        const sandbox = await bed.main();
        await watch(
          sandbox,
          'watch/entry',
          { includeEntry: true },
          () => sandbox.files.write('watch/entry/a', 'four'),
          (events) =>
            events.some(
              (event) =>
                event.type === 'write' &&
                event.entry?.path === '/home/user/watch/entry/a' &&
                event.entry.size === 4 &&
                event.entry.owner === 'user',
            ),
        );
      },
    },
    {
      name: 'watch what is not there, or is no folder: NotFoundError, InvalidArgumentError',
      async run(bed) {
        const { files } = await bed.main();
        await files.write('watch/file', 'x');
        await assert.rejects(
          files.watchDir('watch/nothing', () => {}),
          bed.sdk.NotFoundError,
        );
        await assert.rejects(
          files.watchDir('watch/file', () => {}),
          bed.sdk.InvalidArgumentError,
        );
      },
    },
  ],
};
