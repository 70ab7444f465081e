import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import type { Sandbox, SdkBed } from './bed.ts';

/** The items of all pages. */
async function listed(bed: SdkBed, options: Parameters<SdkBed['sdk']['Sandbox']['listSnapshots']>[0] = {}) {
  const pages = bed.sdk.Sandbox.listSnapshots({ ...bed.options, ...options });
  const items = [];
  while (pages.hasNext) items.push(...(await pages.nextItems()));
  return items;
}

const named = (bed: SdkBed) => `sdk-${bed.version.replaceAll('.', '-')}`;

/** Needs room for one more sandbox. */
export const snapshots: Group<SdkBed> = {
  title: 'Snapshots',
  scenarios: [
    {
      name: 'create a snapshot, with and without a name; the sandbox goes on',
      since: '2.23.0',
      async run(bed) {
        const source = await bed.main();
        await source.files.write('state', 'kept');
        const first = await source.createSnapshot(bed.options);
        assert.match(first.snapshotId, /^[a-z0-9]{20}:default$/);
        assert.equal(await source.isRunning(), true);
        const second = await bed.sdk.Sandbox.createSnapshot(source.sandboxId, {
          ...bed.options,
          name: `${named(bed)}:v1`,
        });
        assert.equal(second.snapshotId, `default/${named(bed)}:v1`);
        assert.deepEqual(second.names, [second.snapshotId]);
      },
    },
    {
      name: 'list snapshots: of a sandbox, page by page; of a sandbox without any',
      since: '2.23.0',
      async run(bed) {
        const { sandboxId } = await bed.main();
        const all = await listed(bed, { sandboxId, limit: 1 });
        assert.equal(all.length, 2);
        assert.deepEqual(await listed(bed, { sandboxId: 'inosuchsandbox' }), []);
      },
    },
    {
      name: 'list snapshots by name; an unknown name gives none',
      since: '2.45.0',
      async run(bed) {
        const found = await listed(bed, { name: named(bed) });
        assert.deepEqual(
          found.map(({ snapshotId }) => snapshotId),
          [`default/${named(bed)}:v1`],
        );
        assert.deepEqual(await listed(bed, { name: 'no-such-snapshot' }), []);
      },
    },
    {
      name: 'create a sandbox from a snapshot: it goes on from there, and is one of its own',
      since: '2.23.0',
      async run(bed) {
        const source = await bed.main();
        await source.files.write('state', 'later');
        const [snapshot] = await listed(bed, { sandboxId: source.sandboxId });
        assert.ok(snapshot);
        const made: Sandbox = await bed.sdk.Sandbox.create(snapshot.snapshotId, { ...bed.options, timeoutMs: 300_000 });
        try {
          assert.notEqual(made.sandboxId, source.sandboxId);
          assert.equal(await made.files.read('state'), 'kept');
          assert.equal(await source.files.read('state'), 'later');
          const inUse = bed.sdk.Sandbox.deleteSnapshot(snapshot.snapshotId, bed.options);
          await assert.rejects(inUse, new RegExp(`400: .*${made.sandboxId}`));
        } finally {
          await made.kill();
        }
      },
    },
    {
      name: 'delete snapshots: the second time it was not there',
      since: '2.23.0',
      async run(bed) {
        const { Sandbox } = bed.sdk;
        const { sandboxId } = await bed.main();
        for (const { snapshotId } of await listed(bed, { sandboxId })) {
          assert.equal(await Sandbox.deleteSnapshot(snapshotId, bed.options), true);
          assert.equal(await Sandbox.deleteSnapshot(snapshotId, bed.options), false);
        }
        assert.deepEqual(await listed(bed, { sandboxId }), []);
        await assert.rejects(Sandbox.createSnapshot('nonexistingsandbox', bed.options), bed.sdk.NotFoundError);
      },
    },
  ],
};
