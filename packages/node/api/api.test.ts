import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ERRORS } from '@aenv/contracts/errors/registry.ts';
import { fullTemplate } from '../store/testing/records.ts';
import { openApiPage } from './generate-openapi.ts';
import { type ApiFixture, apiFixture, KEY } from './testing/fixture.ts';

describe('the API', () => {
  let api: ApiFixture;
  beforeEach(() => {
    api = apiFixture();
  });
  afterEach(() => api[Symbol.asyncDispose]());

  it('answers health without a key and everything else only with it', async () => {
    const none = { headers: { 'X-API-Key': '' } };
    const health = await api.request('GET', '/health', undefined, none);
    assert.deepEqual([health.status, health.text], [204, '']);
    for (const [method, path] of [
      ['GET', '/sandboxes'],
      ['POST', '/v2/sandboxes'],
      ['GET', '/teams'],
      ['GET', '/templates/base'],
      ['POST', '/sandboxes/i1/pause'],
    ] as const) {
      const answer = await api.request(method, path, undefined, none);
      assert.equal(answer.status, 401, path);
      assert.equal(answer.body.code, 401);
      assert.equal(answer.body.error_code, 'unauthorized');
    }
  });

  it('does not read the body of a stranger', async () => {
    let read = false;
    async function* body() {
      read = true;
      yield new Uint8Array(1);
    }
    const options = { headers: { 'X-API-Key': 'wrong' }, context: { body: body() } };
    assert.equal((await api.request('POST', '/sandboxes', undefined, options)).status, 401);
    assert.equal(read, false);
  });

  it('T39: answers unknown routes and methods as JSON', async () => {
    for (const path of ['/', '/nope', '/sandboxes/', '/sandboxes/a/b/c', '/v9/sandboxes', '/%2e%2e/x']) {
      const answer = await api.request('GET', path);
      assert.equal(answer.status, 404, path);
      assert.deepEqual([answer.body.code, answer.body.error_code], [404, 'route_not_found']);
    }
    const put = await api.request('PUT', '/sandboxes', {});
    assert.deepEqual([put.status, put.body.code, put.headers.get('allow')], [405, 405, 'GET, HEAD, POST']);
    const patch = await api.request('PATCH', '/sandboxes/i1');
    assert.deepEqual([patch.status, patch.headers.get('allow')], [405, 'DELETE, GET, HEAD']);
    assert.equal((await api.request('OPTIONS', '/v2/sandboxes')).status, 405);
  });

  it('names the feature of routes that are not served yet', async () => {
    const id = String((await api.request('POST', '/v2/sandboxes', { templateID: 'base' })).body.sandboxID);
    for (const [method, path, feature] of [
      ['PUT', `/sandboxes/${id}/network`, 'egress'],
      ['POST', '/templates', 'Dockerfile'],
      ['GET', '/volumes', 'volumes'],
    ] as const) {
      const answer = await api.request(method, path);
      assert.deepEqual([answer.status, answer.body.code, answer.body.error_code], [501, 501, 'not_served'], path);
      assert.ok(String(answer.body.message).includes(feature), String(answer.body.message));
    }
  });

  it('T39: answers bad bodies as JSON', async () => {
    const bad: [string, number][] = [
      ['{', 400],
      ['{"templateID":"base",}', 400],
      ['{"templateID":"base"} x', 400],
      ['{"templateID":"base","metadata":{"__proto__":"x"}}', 400],
      [String.raw`{"templateID":"base","metadata":{"\u005f_proto__":"x"}}`, 400],
      [`{"templateID":"base","metadata":{"a":"${'x'.repeat(1024 * 1024)}"}}`, 413],
      [`${'['.repeat(200_000)}${']'.repeat(200_000)}`, 400],
    ];
    for (const [body, status] of bad) {
      const answer = await api.request('POST', '/sandboxes', body);
      assert.equal(answer.status, status, body.slice(0, 60));
      assert.equal(answer.body.code, status);
    }
    const latin1 = new Request('http://node.test/sandboxes', {
      method: 'POST',
      headers: { 'X-API-Key': KEY },
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
    });
    assert.equal((await api.api.fetch(latin1)).status, 400);
    const typed = { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } };
    assert.equal((await api.request('POST', '/sandboxes', { templateID: 'base' }, typed)).status, 201);
  });

  it('answers templates, by id and by alias', async () => {
    const { body, list } = await api.request('GET', '/templates?teamID=x');
    assert.deepEqual(list, [
      {
        templateID: 'template000000000000',
        public: false,
        aliases: ['base'],
        names: ['default/base'],
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: '2026-01-01T00:00:01.000Z',
        lastSpawnedAt: null,
        spawnCount: 0,
        cpuCount: 1,
        memoryMB: 512,
        diskSizeMB: 10240,
        envdVersion: '0.6.13',
        buildID: '2f6a0c8e-5a1b-4e8e-9a55-6f0f5b1f7a10',
        buildCount: 1,
        buildStatus: 'ready',
        createdBy: null,
      },
    ]);
    assert.equal(body, list);
    const detail = await api.request('GET', '/templates/base');
    assert.equal(detail.body.templateID, 'template000000000000');
    assert.deepEqual(detail.body.builds, [
      {
        buildID: '2f6a0c8e-5a1b-4e8e-9a55-6f0f5b1f7a10',
        status: 'ready',
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: '2026-01-01T00:00:01.000Z',
        finishedAt: '2026-01-01T00:00:01.000Z',
        cpuCount: 1,
        memoryMB: 512,
        diskSizeMB: 10240,
        envdVersion: '0.6.13',
      },
    ]);
    for (const alias of ['base', 'default%2Fbase%3Adefault']) {
      const found = await api.request('GET', `/templates/aliases/${alias}`);
      assert.deepEqual(found.body, { templateID: 'template000000000000', public: false });
    }
    const missing = await api.request('GET', '/templates/aliases/nothing');
    assert.deepEqual([missing.status, missing.body.code], [404, 404]);
  });

  it('pages templates, newest first, without a token on the exact last page', async () => {
    const names = ['a', 'b', 'c', 'd'];
    api.templates.templates = names.map((name, n) =>
      fullTemplate({ templateId: name, aliases: [], createdAt: new Date(Math.floor(n / 2) * 1000) }),
    );
    const first = await api.request('GET', '/v2/templates?limit=2');
    assert.deepEqual(
      first.list.map((item) => item.templateID),
      ['d', 'c'],
    );
    const second = await api.request('GET', `/v2/templates?limit=2&nextToken=${first.headers.get('x-next-token')}`);
    assert.deepEqual(
      second.list.map((item) => item.templateID),
      ['b', 'a'],
    );
    assert.equal(second.headers.get('x-next-token'), null);
    assert.equal((await api.request('GET', '/v2/templates?nextToken=x')).status, 400);
  });

  it('has one team, whose key is the one that was sent', async () => {
    const teams = await api.request('GET', '/teams');
    assert.deepEqual(teams.list, [{ teamID: 'default', name: 'default', apiKey: KEY, isDefault: true }]);
    assert.ok(!api.logLines.some((line) => line.includes(KEY)));
  });

  it('shows metrics to loopback without a key, to others only with it, labelled by pattern', async () => {
    await api.request('GET', '/sandboxes/canary1');
    await api.request('GET', '/no/canary2');
    const none = { 'X-API-Key': '' };
    for (const peer of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.8.8']) {
      const { status, text } = await api.request('GET', '/metrics', undefined, { headers: none, context: { peer } });
      assert.equal(status, 200);
      assert.match(text, /method="GET",route="\/sandboxes\/\{sandboxID\}",status="404"/);
      assert.match(text, /route="none",status="404"/);
      assert.ok(!text.includes('canary'));
    }
    for (const peer of ['10.0.0.1', '::ffff:10.0.0.1', 'fe80::1', undefined]) {
      const answer = await api.request('GET', '/metrics', undefined, { headers: none, context: { peer } });
      assert.equal(answer.status, 401);
      assert.equal((await api.request('GET', '/metrics', undefined, { context: { peer } })).status, 200);
    }
    const proxied = { headers: { ...none, 'X-Forwarded-For': '10.0.0.1' }, context: { peer: '127.0.0.1' } };
    assert.equal((await api.request('GET', '/metrics', undefined, proxied)).status, 401);
  });

  it('is described by an OpenAPI document with every served route', async () => {
    const document = JSON.parse(
      (await api.request('GET', '/openapi.json', undefined, { headers: { 'X-API-Key': '' } })).text,
    );
    assert.equal(document.openapi, '3.1.0');
    assert.deepEqual(document, JSON.parse(openApiPage('0.0.0')));
    const paths = Object.keys(document.paths);
    for (const path of [
      '/health',
      '/sandboxes',
      '/v2/sandboxes',
      '/sandboxes/{sandboxID}/connect',
      '/templates/{templateID}',
    ]) {
      assert.ok(paths.includes(path), path);
    }
    assert.ok(!paths.some((path) => path.includes('volumes')));
    const create = document.paths['/v2/sandboxes'].post;
    assert.deepEqual(create.requestBody.content['application/json'].schema, {
      $ref: '#/components/schemas/NewSandboxV2',
    });
    assert.equal(document.components.schemas.NewSandboxV2.additionalProperties, false);
    assert.deepEqual(document.components.schemas.NewSandboxV2.required, ['templateID']);
    assert.equal(ERRORS.not_served.status, 501);
  });
});
