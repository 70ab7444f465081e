import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

const origin = { Origin: 'https://app.test' };

describe('the API for browsers and clients that wait', () => {
  let api: ApiFixture;
  beforeEach(() => {
    api = apiFixture();
  });
  afterEach(() => api[Symbol.asyncDispose]());

  it('answers a preflight without a key, for any header', async () => {
    const answer = await api.request('OPTIONS', '/v2/sandboxes', undefined, {
      headers: {
        ...origin,
        'X-API-Key': '',
        'Access-Control-Request-Method': 'DELETE',
        'Access-Control-Request-Headers': 'x-api-key,browser,publisher',
      },
    });
    assert.deepEqual([answer.status, answer.text], [204, '']);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-allow-methods') ?? '', /DELETE/);
    assert.equal(answer.headers.get('access-control-allow-headers'), 'x-api-key,browser,publisher');
  });

  it('lets scripts read answers, errors and the headers of pages', async () => {
    for (const [key, status] of [
      [undefined, 200],
      ['wrong', 401],
    ] as const) {
      const headers = { ...origin, ...(key === undefined ? {} : { 'X-API-Key': key }) };
      const answer = await api.request('GET', '/v2/sandboxes', undefined, { headers });
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get('access-control-allow-origin'), '*');
      assert.match(answer.headers.get('access-control-expose-headers') ?? '', /X-Next-Token/);
    }
    const plain = await api.request('GET', '/v2/sandboxes');
    assert.equal(plain.headers.get('access-control-allow-origin'), null);
    const bare = await api.request('OPTIONS', '/v2/sandboxes', undefined, { headers: origin });
    assert.equal(bare.status, 405);
  });

  it('keeps what needs no key on loopback from the scripts of other pages', async () => {
    const context = { peer: '127.0.0.1' };
    const answer = await api.request('GET', '/metrics', undefined, { headers: origin, context });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
  });

  it('says when to come again with what is a matter of time, and with nothing else', async () => {
    const create = () => api.request('POST', '/v2/sandboxes', { templateID: 'base' });
    for (const [code, status] of [
      ['capacity_exhausted', 503],
      ['too_many_connections', 429],
    ] as const) {
      api.sandboxes.failure = new AenvError(code, 'full');
      const answer = await create();
      assert.equal(answer.status, status);
      assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    }
    api.sandboxes.failure = new AenvError('boot_failed', 'no');
    assert.equal((await create()).headers.get('retry-after'), null);
  });
});
