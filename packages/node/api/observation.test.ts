import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { LoadSample, SandboxLogEntry } from '../sandboxes/observe/contract.ts';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

const sample = (at: number): LoadSample => ({
  at,
  cpuCount: 1,
  cpuUsedPct: 12.5,
  memUsed: 2,
  memTotal: 3,
  memCache: 1,
  diskUsed: 5,
  diskTotal: 9,
});
const shown = (at: number) => {
  const { at: _at, ...load } = sample(at);
  return { timestamp: new Date(at).toISOString(), timestampUnix: Math.floor(at / 1000), ...load };
};
const entry: SandboxLogEntry = {
  at: Date.UTC(2026, 0, 1),
  level: 'info',
  logger: 'process',
  message: 'process 7 ended: exit status 0',
  fields: { pid: '7' },
};

describe('what is observed of sandboxes', () => {
  let api: ApiFixture;
  let id: string;
  beforeEach(async () => {
    api = apiFixture();
    id = String((await api.request('POST', '/v2/sandboxes', { templateID: 'base' })).body.sandboxID);
  });
  afterEach(() => api[Symbol.asyncDispose]());

  it('metrics come as a series, cut to whole seconds', async () => {
    const path = `/sandboxes/${id}/metrics`;
    assert.deepEqual((await api.request('GET', path)).list, []);
    api.observations.load.set(id, [sample(1_000_500), sample(1_005_500), sample(1_010_500)]);
    assert.deepEqual((await api.request('GET', path)).list, [1_000_500, 1_005_500, 1_010_500].map(shown));
    assert.deepEqual((await api.request('GET', `${path}?start=1001&end=1005`)).list, [shown(1_005_500)]);
    assert.deepEqual((await api.request('GET', `${path}?start=0&end=999`)).list, []);
  });

  it('metrics of several sandboxes are their last ones, without those that have none', async () => {
    api.observations.load.set(id, [sample(1000), sample(2000)]);
    const answer = await api.request('GET', `/sandboxes/metrics?sandbox_ids=${id},inone,${id}-old`);
    assert.deepEqual([answer.status, answer.body], [200, { sandboxes: { [id]: shown(2000) } }]);
    const many = Array.from({ length: 101 }, (_, index) => `i${index}`).join(',');
    for (const query of ['', `?sandbox_ids=${many}`, '?sandbox_ids=a.b']) {
      assert.equal((await api.request('GET', `/sandboxes/metrics${query}`)).status, 400, query.slice(0, 30));
    }
  });

  it('logs of the first form hold each entry twice, once as a line of JSON', async () => {
    api.observations.entries.set(id, [entry]);
    const answer = await api.request('GET', `/sandboxes/${id}/logs?start=5&limit=3`);
    assert.equal(answer.status, 200);
    const timestamp = '2026-01-01T00:00:00.000Z';
    const { logs, logEntries } = answer.body as { logs: { timestamp: string; line: string }[]; logEntries: unknown };
    const { message, level } = entry;
    assert.deepEqual(logEntries, [{ timestamp, level, message, fields: { pid: '7', logger: 'process' } }]);
    assert.equal(logs[0]?.timestamp, timestamp);
    assert.deepEqual(JSON.parse(logs[0]?.line ?? ''), { level, logger: 'process', message, pid: '7' });
    assert.deepEqual(api.observations.queries, [{ direction: 'forward', limit: 3, cursor: 5 }]);
  });

  it('logs of the second form are filtered, and outlive their sandbox', async () => {
    api.observations.entries.set(id, [entry]);
    await api.request('DELETE', `/sandboxes/${id}`);
    const query = 'cursor=9&limit=2&direction=backward&level=warn&search=End';
    const answer = await api.request('GET', `/v2/sandboxes/${id}/logs?${query}`);
    assert.equal((answer.body.logs as unknown[]).length, 1);
    await api.request('GET', `/v2/sandboxes/${id}/logs`);
    assert.deepEqual(api.observations.queries, [
      { cursor: 9, limit: 2, direction: 'backward', level: 'warn', search: 'End' },
      { direction: 'forward', limit: 1000 },
    ]);
  });

  it('a sandbox that is not there is 404 in the body as well, one without a log has an empty one', async () => {
    for (const path of ['/sandboxes/inone/metrics', '/sandboxes/inone/logs', '/v2/sandboxes/inone/logs']) {
      const answer = await api.request('GET', path);
      assert.deepEqual([answer.status, answer.body.code], [404, 404], path);
    }
    assert.deepEqual((await api.request('GET', `/v2/sandboxes/${id}/logs`)).body, { logs: [] });
  });

  it('bad ranges and limits are refused by name', async () => {
    for (const [path, name] of [
      ['metrics?start=5&end=4', 'query.start'],
      ['metrics?start=-1', 'query.start'],
      ['metrics?step=1', 'query.step'],
      ['logs?limit=1001', 'query.limit'],
      ['logs?start=x', 'query.start'],
    ] as const) {
      const answer = await api.request('GET', `/sandboxes/${id}/${path}`);
      assert.equal(answer.status, 400, path);
      assert.ok(String(answer.body.message).startsWith(`${name}: `), String(answer.body.message));
    }
    for (const query of ['direction=up', 'level=loud', `search=${'x'.repeat(1001)}`]) {
      assert.equal((await api.request('GET', `/v2/sandboxes/${id}/logs?${query}`)).status, 400, query.slice(0, 20));
    }
  });
});
