import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { metadataFilter } from './query/metadata-filter.ts';
import { startedAfter } from './query/moment.ts';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

describe('listing sandboxes', () => {
  let api: ApiFixture;
  beforeEach(() => {
    api = apiFixture();
  });
  afterEach(() => api[Symbol.asyncDispose]());

  const create = async (metadata: Record<string, string> = {}) => {
    const { body } = await api.request('POST', '/v2/sandboxes', { templateID: 'base', metadata });
    return String(body.sandboxID);
  };
  const ids = async (path: string) => {
    const answer = await api.request('GET', path);
    assert.equal(answer.status, 200, answer.text);
    return answer.list.map((item) => item.sandboxID);
  };

  it('answers exactly the listed fields', async () => {
    const sandboxID = await create({ a: 'b' });
    const expected = {
      sandboxID,
      templateID: 'template000000000000',
      clientID: 'aenv',
      startedAt: '2026-01-01T00:00:01.000Z',
      endAt: '2026-01-01T00:05:01.000Z',
      cpuCount: 1,
      memoryMB: 512,
      diskSizeMB: 10240,
      state: 'running',
      envdVersion: '0.6.13',
      alias: 'base',
      metadata: { a: 'b' },
    };
    assert.deepEqual((await api.request('GET', '/v2/sandboxes')).list, [expected]);
    assert.deepEqual((await api.request('GET', '/sandboxes')).list, [expected]);
    await api.request('DELETE', `/sandboxes/${sandboxID}`);
    await create();
    assert.ok(!('metadata' in ((await api.request('GET', '/v2/sandboxes')).list[0] ?? {})));
  });

  it('has no token on a last page that is exactly full', async () => {
    const [first, second] = [await create(), await create()];
    const one = await api.request('GET', '/v2/sandboxes?limit=1');
    assert.equal(one.list[0]?.sandboxID, second);
    assert.equal(one.headers.get('x-total-running'), '2');
    const token = one.headers.get('x-next-token');
    assert.ok(token);
    const two = await api.request('GET', `/v2/sandboxes?limit=1&nextToken=${token}`);
    assert.equal(two.list[0]?.sandboxID, first);
    assert.equal(two.headers.get('x-next-token'), null);
    assert.deepEqual(await ids('/v2/sandboxes?nextToken='), [second, first]);
    assert.deepEqual(await ids('/v2/sandboxes?order=asc'), [first, second]);
    assert.equal((await api.request('GET', `/v2/sandboxes?order=asc&nextToken=${token}`)).status, 400);
  });

  it('decodes the metadata filter three times', async () => {
    const wanted = await create({ 'a b': 'c&d' });
    await create({ 'a b': 'other' });
    assert.deepEqual(await ids('/v2/sandboxes?metadata=a%252520b%3Dc%252526d'), [wanted]);
    assert.deepEqual(await ids('/sandboxes?metadata=a%252520b%3Dc%252526d'), [wanted]);
    assert.deepEqual(metadataFilter('a%2520b=c%2526d&e=f'), { 'a b': 'c&d', e: 'f' });
    assert.equal((await api.request('GET', '/v2/sandboxes?metadata=a%3D%2525')).status, 400);
  });

  it('filters by state, start time and template', async () => {
    const [first, second] = [await create(), await create()];
    assert.deepEqual(await ids('/v2/sandboxes?state=running,paused'), [second, first]);
    assert.deepEqual(await ids('/v2/sandboxes?state=running&state=paused'), [second, first]);
    const paused = await api.request('GET', '/v2/sandboxes?state=paused');
    assert.deepEqual(paused.list, []);
    assert.equal(paused.headers.get('x-total-running'), null);
    assert.deepEqual(await ids('/v2/sandboxes?startedAfter=2026-01-01T00:00:02Z'), [second]);
    assert.deepEqual(await ids('/v2/sandboxes?startedAfter=2026-01-01T02:00:02.000%2B02:00'), [second]);
    assert.deepEqual(await ids('/v2/sandboxes?startedAfter=2026-01-01T02:00:02.000+02:00'), [second]);
    assert.deepEqual(await ids('/v2/sandboxes?startedAfter=2026-01-01T00:00:02.000001Z'), []);
    assert.deepEqual(await ids('/v2/sandboxes?startedAfter=2026-01-01T00:00:02.0000001Z'), [second]);
    assert.deepEqual(await ids('/v2/sandboxes?template=template000000000000'), [second, first]);
    assert.deepEqual(await ids('/v2/sandboxes?template=unknown'), []);
  });

  it('refuses bad parameters by name', async () => {
    const bad: Record<string, string> = {
      'limit=0': 'query.limit',
      'limit=101': 'query.limit',
      'limit=x': 'query.limit',
      'limit=1&limit=2': 'query.limit',
      'order=up': 'query.order',
      'state=stopped': 'query.state',
      'startedAfter=yesterday': 'query.startedAfter',
      'template=base:v1': 'query.template',
      'nextToken=x': 'query.nextToken',
      'stat=running': 'query.stat: unknown parameter',
    };
    for (const [query, part] of Object.entries(bad)) {
      const answer = await api.request('GET', `/v2/sandboxes?${query}`);
      assert.equal(answer.status, 400, query);
      assert.ok(String(answer.body.message).includes(part), `${query}: ${answer.body.message}`);
    }
    for (const text of ['2026-01-02', '2026-13-01T00:00:00Z', '2026-01-01T00:00:00', '1767225600']) {
      assert.throws(() => startedAfter(text), /RFC 3339/);
    }
  });

  it('gives old clients all of them, beyond one page', async () => {
    for (let n = 0; n < 103; n++) await create();
    assert.equal((await ids('/sandboxes')).length, 103);
    assert.equal((await ids('/v2/sandboxes')).length, 100);
  });
});
