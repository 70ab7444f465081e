import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import { METADATA, type SdkBed } from './bed.ts';

type ListOptions = Parameters<SdkBed['sdk']['Sandbox']['list']>[0];

async function ids(bed: SdkBed, options: ListOptions): Promise<string[]> {
  const page = await bed.sdk.Sandbox.list({ ...bed.options, ...options }).nextItems();
  return page.map(({ sandboxId }) => sandboxId);
}

export const listing: Group<SdkBed> = {
  title: 'Lists',
  scenarios: [
    {
      name: 'list those that run, with what is known of each',
      async run(bed) {
        const sandbox = await bed.main();
        const page = await bed.sdk.Sandbox.list({ ...bed.options, query: { state: ['running'] } }).nextItems();
        const found = page.find(({ sandboxId }) => sandboxId === sandbox.sandboxId);
        assert.ok(found);
        const { name, state, cpuCount, memoryMB, metadata } = found;
        assert.deepEqual([name, state, cpuCount, memoryMB], ['base', 'running', 1, 512]);
        assert.deepEqual(metadata, { ...METADATA, version: bed.version });
        assert.deepEqual(await ids(bed, { query: { state: ['paused'] } }), []);
        assert.ok((await ids(bed, { query: { state: ['running', 'paused'] } })).includes(sandbox.sandboxId));
      },
    },
    {
      name: 'list by metadata with unusual characters',
      async run(bed) {
        const sandbox = await bed.main();
        assert.deepEqual(await ids(bed, { query: { metadata: METADATA } }), [sandbox.sandboxId]);
        assert.deepEqual(await ids(bed, { query: { metadata: { 'a b': 'other' } } }), []);
      },
    },
    {
      name: 'list page by page, newest first, with no page after the last full one',
      async run(bed) {
        await bed.full();
        const paginator = bed.sdk.Sandbox.list({ ...bed.options, limit: 1 });
        const pages: string[][] = [];
        while (paginator.hasNext) pages.push((await paginator.nextItems()).map(({ sandboxId }) => sandboxId));
        const [main, second] = [await bed.main(), await bed.second()];
        assert.deepEqual(pages.flat().sort(), [main.sandboxId, second.sandboxId].sort());
        assert.equal(pages.length, 2);
        assert.deepEqual(await ids(bed, {}), pages.flat());
      },
    },
    {
      name: 'list by template and start time, in either order',
      since: '2.45.0',
      async run(bed) {
        await bed.full();
        const newest = await ids(bed, { query: { template: 'base' } });
        assert.equal(newest.length, 2);
        assert.deepEqual(await ids(bed, { order: 'asc' }), newest.toReversed());
        assert.deepEqual(await ids(bed, { query: { template: 'no-such-template' } }), []);
        const { startedAt } = await bed.sdk.Sandbox.getInfo(newest[0] ?? '', bed.options);
        assert.deepEqual(await ids(bed, { query: { startedAfter: startedAt } }), newest.slice(0, 1));
        assert.deepEqual(await ids(bed, { query: { startedAfter: new Date(Date.now() + 60_000) } }), []);
      },
    },
  ],
};
