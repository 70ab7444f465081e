import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

describe('one sandbox', () => {
  let api: ApiFixture;
  let id: string;
  beforeEach(async () => {
    api = apiFixture({ domain: 'sandbox.test' });
    const body = { templateID: 'base', network: { httpsPorts: [8443] }, metadata: { a: 'b' } };
    id = String((await api.request('POST', '/v2/sandboxes', body)).body.sandboxID);
  });
  afterEach(() => api[Symbol.asyncDispose]());

  it('is described with its options and tokens', async () => {
    const answer = await api.request('GET', `/sandboxes/${id}`);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      sandboxID: id,
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
      domain: 'sandbox.test',
      envdAccessToken: 'envd-token',
      allowInternetAccess: null,
      network: { allowPublicTraffic: true, httpsPorts: [8443] },
      lifecycle: { onTimeout: 'kill', autoResume: false },
    });
  });

  it('is ended by DELETE, with or without a body, and then is 404 in the body as well', async () => {
    const answer = await api.request('DELETE', `/sandboxes/${id}`, {});
    assert.equal(answer.status, 204);
    assert.equal(answer.text, '');
    for (const [method, path, body] of [
      ['DELETE', `/sandboxes/${id}`, undefined],
      ['GET', `/sandboxes/${id}`, undefined],
      ['GET', '/sandboxes/nonexistingsandbox', undefined],
      ['POST', `/sandboxes/${id}/timeout`, { timeout: 5 }],
      ['POST', `/sandboxes/${id}/connect`, { timeout: 5 }],
      ['POST', `/sandboxes/${id}/refreshes`, {}],
      ['POST', `/sandboxes/${id}/pause`, {}],
      ['POST', `/sandboxes/${id}/resume`, { timeout: 5 }],
      ['POST', `/sandboxes/${id}/fork`, {}],
      ['POST', `/sandboxes/${id}/snapshots`, {}],
    ] as const) {
      const again = await api.request(method, path, body);
      assert.equal(again.status, 404, path);
      assert.equal(again.body.code, 404);
      assert.equal(again.body.error_code, 'sandbox_not_found');
    }
  });

  it('is not resumed while it runs', async () => {
    const answer = await api.request('POST', `/sandboxes/${id}/resume`, { timeout: 5 });
    assert.deepEqual([answer.status, answer.body.code], [409, 409]);
  });

  it('is paused once, listed as paused, and resumed or connected to', async () => {
    const pause = (body: unknown) => api.request('POST', `/sandboxes/${id}/pause`, body);
    assert.deepEqual([(await pause('')).status, (await pause({})).status], [204, 409]);
    assert.equal((await api.request('GET', `/sandboxes/${id}`)).body.state, 'paused');
    const resumed = await api.request('POST', `/sandboxes/${id}/resume`, '');
    assert.deepEqual([resumed.status, resumed.body.sandboxID, resumed.body.envdAccessToken], [201, id, 'envd-token']);
    assert.equal((await pause({ memory: true })).status, 204);
    assert.equal((await api.request('POST', `/sandboxes/${id}/connect`, { timeout: 60 })).status, 201);
    assert.deepEqual(
      api.sandboxes.calls.map(([name, , value]) => [name, value]),
      [
        ['pause', 1],
        ['resume', 15],
        ['pause', 1],
        ['connect', 60],
      ],
    );
    for (const body of [{ memory: 'yes' }, { x: 1 }]) {
      const refused = await pause(body);
      assert.equal(refused.status, 400);
      assert.ok(
        String(refused.body.message).startsWith(`body.${Object.keys(body)[0]}: `),
        String(refused.body.message),
      );
    }
  });

  it('is forked, with one entry for each child', async () => {
    const path = `/sandboxes/${id}/fork`;
    const forks = await api.request('POST', path, { count: 2, timeout: 60 });
    assert.equal(forks.status, 201);
    const [first, second] = forks.list as Record<string, Record<string, unknown>>[];
    assert.deepEqual([first?.sandbox?.sandboxID, first?.error], [`${id}f0`, undefined]);
    const { remediation, ...error } = second?.error ?? {};
    const expected = { code: 503, message: 'no room', error_code: 'capacity_exhausted' };
    assert.deepEqual([second?.sandbox, error], [undefined, expected]);
    assert.ok(String(remediation).length > 20);
    assert.equal((await api.request('POST', path, '')).list.length, 1);
    assert.deepEqual(
      api.sandboxes.calls.map(([, , seconds]) => seconds),
      [60, 300],
    );
    for (const body of [{ count: 0 }, { count: 101 }, { count: 1.5 }, { count: '2' }, { timeout: 0 }, { x: 1 }]) {
      const refused = await api.request('POST', path, body);
      assert.equal(refused.status, 400, JSON.stringify(body));
      assert.ok(
        String(refused.body.message).startsWith(`body.${Object.keys(body)[0]}: `),
        String(refused.body.message),
      );
    }
    await api.request('POST', `/sandboxes/${id}/pause`, {});
    assert.equal((await api.request('POST', path, {})).status, 409);
  });

  it('may be resumed with another word on what its end does', async () => {
    const end = async () => ((await api.request('GET', `/sandboxes/${id}`)).body.lifecycle as object | undefined) ?? {};
    for (const [autoPause, onTimeout] of [
      [true, 'pause'],
      [null, 'pause'],
      [false, 'kill'],
    ]) {
      await api.request('POST', `/sandboxes/${id}/pause`);
      assert.equal((await api.request('POST', `/sandboxes/${id}/resume`, { timeout: 60, autoPause })).status, 201);
      assert.deepEqual(await end(), { onTimeout, autoResume: false });
    }
  });

  it('may be named with a client id, and with nothing else', async () => {
    assert.equal((await api.request('GET', `/sandboxes/${id}-6532622b`)).status, 200);
    for (const bad of [`${id}-a-b`, id.toUpperCase(), 'a%2Fb', 'a%00', `${'a'.repeat(65)}`, 'a.b', '%E2%98%83']) {
      const answer = await api.request('GET', `/sandboxes/${bad}`);
      assert.equal(answer.status, 400, bad);
      assert.ok(String(answer.body.message).startsWith('path.sandboxID'));
    }
    assert.equal((await api.request('GET', '/sandboxes/%zz')).status, 400);
  });

  it('is connected to in both versions', async () => {
    const old = await api.request('POST', `/sandboxes/${id}/connect`, { timeout: 60 });
    assert.equal(old.status, 200);
    assert.equal(old.body.envdAccessToken, 'envd-token');
    for (const body of ['', '{}', '{"timeout":null,"memory":false}']) {
      assert.equal((await api.request('POST', `/v2/sandboxes/${id}/connect`, body)).status, 200, body);
    }
    assert.deepEqual(
      api.sandboxes.calls.map(([, , seconds]) => seconds),
      [60, 300, 300, 300],
    );
    for (const body of ['', {}, { timeout: 0 }, { timeout: 1e12 }, { timeout: '5' }, { timeout: 5, x: 1 }]) {
      assert.equal((await api.request('POST', `/sandboxes/${id}/connect`, body)).status, 400, JSON.stringify(body));
    }
  });

  it('gets a new end, shorter or now, and refreshes of at least 15 s', async () => {
    for (const timeout of [60, 0, -5]) {
      const answer = await api.request('POST', `/sandboxes/${id}/timeout`, { timeout });
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
    }
    for (const body of ['', { duration: 3 }, { duration: 3600 }, { duration: null }]) {
      assert.equal((await api.request('POST', `/sandboxes/${id}/refreshes`, body)).status, 204);
    }
    assert.deepEqual(
      api.sandboxes.calls.map(([name, , seconds]) => [name, seconds]),
      [
        ['setTimeout', 60],
        ['setTimeout', 0],
        ['setTimeout', 0],
        ['refresh', 15],
        ['refresh', 15],
        ['refresh', 3600],
        ['refresh', 15],
      ],
    );
    for (const timeout of [86_401, '5', null, 1.5]) {
      assert.equal((await api.request('POST', `/sandboxes/${id}/timeout`, { timeout })).status, 400);
    }
    assert.equal((await api.request('POST', `/sandboxes/${id}/refreshes`, { duration: 3601 })).status, 400);
    assert.equal((await api.request('POST', `/sandboxes/${id}/refreshes`, { duration: -1 })).status, 400);
  });
});
