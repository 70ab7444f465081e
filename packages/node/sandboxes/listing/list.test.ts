import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ListQuery, SandboxView } from '../contract.ts';
import { listPage } from './list.ts';

const view = (sandboxId: string, startedAt: number, metadata: Record<string, string> = {}): SandboxView => ({
  sandboxId,
  templateId: 'tbase',
  state: 'running',
  startedAt: new Date(startedAt),
  endAt: new Date(startedAt + 1000),
  cpuCount: 1,
  memoryMb: 512,
  diskSizeMb: 10240,
  metadata,
  envdVersion: '0.5.7',
  allowInternetAccess: null,
  network: { allowPublicTraffic: true, httpsPorts: [] },
  onTimeout: 'kill',
  autoResume: false,
});

const VIEWS = [view('ia', 1000, { a: '1', b: '2' }), view('ib', 1000, { a: '1' }), view('ic', 3000), view('id', 2000)];
const QUERY: ListQuery = { states: ['running', 'paused'], order: 'desc', limit: 100 };
const ids = (query: Partial<ListQuery>, templateId?: string) =>
  listPage(VIEWS, { ...QUERY, ...query }, templateId).items.map((item) => item.sandboxId);

test('newest first by default, ties by id, and turned round by asc', () => {
  assert.deepEqual(ids({}), ['ic', 'id', 'ib', 'ia']);
  assert.deepEqual(ids({ order: 'asc' }), ['ia', 'ib', 'id', 'ic']);
});

test('filters by all metadata pairs, start time (inclusive), template and state', () => {
  assert.deepEqual(ids({ metadata: { a: '1' } }), ['ib', 'ia']);
  assert.deepEqual(ids({ metadata: { a: '1', b: '2' } }), ['ia']);
  assert.deepEqual(ids({ metadata: { toString: 'x' } }), []);
  assert.deepEqual(ids({ startedAfter: new Date(2000) }), ['ic', 'id']);
  assert.deepEqual(ids({ template: 'base' }, 'tbase').length, 4);
  assert.deepEqual(ids({ template: 'nope' }, undefined), []);
  assert.deepEqual(ids({ states: ['paused'] }), []);
});

for (const order of ['asc', 'desc'] as const) {
  test(`pages of one (${order}) visit every sandbox once, and the last has no token`, () => {
    const seen: string[] = [];
    let nextToken: string | undefined;
    do {
      const page = listPage(VIEWS, { ...QUERY, order, limit: 1, ...(nextToken && { nextToken }) }, undefined);
      assert.equal(page.totalRunning, 4);
      seen.push(...page.items.map((item) => item.sandboxId));
      nextToken = page.nextToken;
    } while (nextToken !== undefined);
    assert.deepEqual(seen, ids({ order }));
  });
}

test('a page goes on where the one before ended, also when that sandbox is gone', () => {
  const { nextToken } = listPage(VIEWS, { ...QUERY, limit: 2 }, undefined);
  assert.ok(nextToken);
  const left = VIEWS.filter((item) => item.sandboxId !== 'id');
  const page = listPage(left, { ...QUERY, nextToken }, undefined);
  assert.deepEqual(
    page.items.map((item) => item.sandboxId),
    ['ib', 'ia'],
  );
});

test('refuses tokens that are broken or of the other order', () => {
  const { nextToken = '' } = listPage(VIEWS, { ...QUERY, limit: 2 }, undefined);
  for (const query of [
    { nextToken: 'garbage' },
    { nextToken: Buffer.from('2024-99-99T00:00:00.000Z__ia').toString('base64url') },
    { nextToken: 'A'.repeat(10_000) },
    { nextToken, order: 'asc' as const },
  ]) {
    assert.throws(
      () => ids(query),
      (error) => error instanceof AenvError && error.code === 'invalid_request',
    );
  }
});
