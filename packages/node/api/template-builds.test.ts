import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiFixture } from './testing/fixture.ts';

test('a built-in template is built by name, and its state is asked for as that of any build', async () => {
  await using api = apiFixture();
  const started = await api.request('POST', '/aenv/templates/code-interpreter/builds');
  assert.deepEqual([started.status, started.body], [202, { templateID: 't1', buildID: 'b1' }]);
  assert.deepEqual(api.builds.started, ['code-interpreter']);
  const entry = { timestamp: new Date(0), level: 'warn', message: 'careful' } as const;
  api.builds.current = { ...api.builds.current, status: 'error', entries: [entry], reason: 'why' };
  const path = '/templates/t1/builds/b1/status';
  const { status, body } = await api.request('GET', `${path}?logsOffset=3&limit=7&level=info`);
  assert.equal(status, 200);
  assert.deepEqual(api.builds.queries, [{ offset: 3, limit: 7, level: 'info' }]);
  assert.deepEqual(body, {
    ...{ templateID: 't1', buildID: 'b1', status: 'error', logs: ['careful'], reason: { message: 'why' } },
    logEntries: [{ timestamp: '1970-01-01T00:00:00.000Z', level: 'warn', message: 'careful' }],
  });
  api.builds.current = { templateId: 't1', buildId: 'b1', status: 'building', entries: [] };
  assert.deepEqual((await api.request('GET', path)).body, {
    ...{ templateID: 't1', buildID: 'b1', status: 'building', logs: [], logEntries: [] },
  });
  assert.deepEqual(api.builds.queries.at(-1), { offset: 0, limit: 100, level: undefined });
});

test('what is no build or no query is told', async () => {
  await using api = apiFixture();
  assert.equal((await api.request('POST', '/aenv/templates/unknown/builds')).status, 404);
  assert.equal((await api.request('GET', '/templates/t1/builds/other/status')).status, 404);
  for (const query of ['limit=101', 'limit=-1', 'logsOffset=x', 'level=loud', 'other=1']) {
    assert.equal((await api.request('GET', `/templates/t1/builds/b1/status?${query}`)).status, 400, query);
  }
  assert.equal(
    (await api.request('POST', '/aenv/templates/x/builds', undefined, { headers: { 'X-API-Key': '' } })).status,
    401,
  );
});
