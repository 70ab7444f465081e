import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type ApiFixture, apiFixture, KEY } from './testing/fixture.ts';

describe('API keys over the API', () => {
  let api: ApiFixture;
  beforeEach(() => {
    api = apiFixture();
  });
  afterEach(() => api[Symbol.asyncDispose]());

  const withKey = (key: unknown) => api.request('GET', '/teams', undefined, { headers: { 'X-API-Key': String(key) } });

  it('are created, shown once, listed masked, renamed and revoked', async () => {
    const created = await api.request('POST', '/api-keys', { name: ' ci ' });
    assert.equal(created.status, 201);
    const { key, ...shown } = created.body;
    assert.match(String(key), /^e2b_[0-9a-f]{64}$/);
    assert.equal(shown.name, 'ci');
    assert.equal(shown.lastUsed, null);
    const value = String(key).slice(4);
    assert.deepEqual(shown.mask, {
      prefix: 'e2b_',
      valueLength: 64,
      maskedValuePrefix: value.slice(0, 2),
      maskedValueSuffix: value.slice(-4),
    });
    assert.deepEqual((await api.request('GET', '/api-keys')).list, [shown]);

    const teams = await withKey(key);
    assert.deepEqual([teams.status, teams.list[0]?.apiKey, teams.list[0]?.teamID], [200, key, 'default']);
    const listed = await api.request('GET', '/api-keys');
    assert.equal(typeof listed.list[0]?.lastUsed, 'string');
    assert.ok(!listed.text.includes(value));

    const renamed = await api.request('PATCH', `/api-keys/${shown.id}`, { name: 'other' });
    assert.deepEqual([renamed.status, renamed.body.name, renamed.body.id], [200, 'other', shown.id]);

    const revoked = await api.request('DELETE', `/api-keys/${shown.id}`);
    assert.deepEqual([revoked.status, revoked.text], [204, '']);
    const refused = await withKey(key);
    assert.deepEqual([refused.status, refused.body.code], [401, 401]);
    assert.deepEqual((await api.request('GET', '/api-keys')).list, []);
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', { name: 'x' }],
    ] as const) {
      const gone = await api.request(method, `/api-keys/${shown.id}`, body);
      assert.deepEqual([gone.status, gone.body.code, gone.body.error_code], [404, 404, 'api_key_not_found']);
    }
    assert.equal((await withKey(KEY)).status, 200, 'the key of the node stays valid');
  });

  it('need a name that can be shown', async () => {
    for (const body of [undefined, {}, { name: '' }, { name: '  ' }, { name: 'x'.repeat(101) }, { name: 'a\u0007' }]) {
      const answer = await api.request('POST', '/api-keys', body);
      assert.equal(answer.status, 400);
      assert.match(String(answer.body.message), /^body(\.name)?: /);
    }
    const unknown = await api.request('POST', '/api-keys', { name: 'a', scopes: [] });
    assert.match(String(unknown.body.message), /body\.scopes: unknown field/);
    assert.deepEqual((await api.request('GET', '/api-keys')).list, []);
  });

  it('are for those who have one', async () => {
    const answer = await api.request('POST', '/api-keys', { name: 'a' }, { headers: { 'X-API-Key': '' } });
    assert.equal(answer.status, 401);
  });
});
