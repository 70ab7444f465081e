import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { fullTemplate } from '../store/testing/records.ts';
import { apiFixture } from './testing/fixture.ts';

const BUILD = '/v2/templates/t1/builds/b1';

test('a template is ordered by name, by alias and within the namespace; sizes have defaults', async () => {
  await using api = apiFixture();
  const order = async (body: unknown) => await api.request('POST', '/v3/templates', body);
  const { status, body } = await order({ name: ' My-Tools ', cpuCount: 2, memoryMB: 1024, tags: [] });
  assert.equal(status, 202);
  assert.deepEqual(body, {
    ...{ templateID: 't1', buildID: 'b1', public: false },
    ...{ aliases: ['my-tools'], names: ['default/my-tools'], tags: ['default'] },
  });
  assert.equal((await order({ alias: 'old' })).status, 202);
  assert.equal((await order({ name: 'default/x:default', diskSizeMB: 512 })).status, 202);
  assert.deepEqual(api.images.ordered, [
    { alias: 'my-tools', tags: ['default'], cpuCount: 2, memoryMb: 1024, diskSizeMb: undefined },
    { alias: 'old', tags: ['default'], cpuCount: 1, memoryMb: 512, diskSizeMb: undefined },
    { alias: 'x', tags: ['default'], cpuCount: 1, memoryMb: 512, diskSizeMb: 512 },
  ]);
  assert.deepEqual((await order({ name: 'x:v1', tags: ['V2', 'v1'] })).body.tags, ['v1', 'v2']);
  const legacy = await api.request('POST', '/v2/templates', { alias: 'older', cpuCount: 2 });
  const { templateID, buildID, aliases, buildStatus, diskSizeMB } = legacy.body;
  const told = [legacy.status, templateID, buildID, aliases, buildStatus, diskSizeMB];
  assert.deepEqual(told, [202, 't1', 'b1', ['older'], 'waiting', 10240]);
});

test('orders that cannot be met are refused by the name of the field', async () => {
  await using api = apiFixture();
  for (const [body, message, code] of [
    [{}, /body\.name: required/, 'invalid_request'],
    [{ name: 'other/x' }, /namespace/, 'invalid_request'],
    [{ name: 'a b' }, /a-z/, 'invalid_request'],
    [{ name: 'a'.repeat(20) }, /id of a template/, 'invalid_request'],
    [{ name: 'x', cpuCount: 0 }, /body\.cpuCount/, 'invalid_request'],
    [{ name: 'x', memoryMB: 1.5 }, /body\.memoryMB/, 'invalid_request'],
    [{ name: 'x', surprise: 1 }, /body\.surprise: unknown field/, 'invalid_request'],
    [{ name: 'x:' }, /a tag consists/, 'invalid_request'],
    [{ name: 'x', tags: ['a b'] }, /bad tag 'a b'/, 'invalid_request'],
    [{ name: 'x', tags: ['0c8f31a5-5d1c-4f0e-9d0e-2f6f0a4ce7a1'] }, /no UUID/, 'invalid_request'],
    [{ name: 'x', minFreeDiskMb: 1 }, /body\.minFreeDiskMb/, 'unsupported_field'],
  ] as const) {
    const answer = await api.request('POST', '/v3/templates', body);
    assert.deepEqual([answer.status, answer.body.error_code], [400, code], JSON.stringify(body));
    assert.match(String(answer.body.message), message);
  }
  assert.deepEqual(api.images.ordered, []);
});

test('a build is started with what the client says of image, credentials, start and readiness', async () => {
  await using api = apiFixture();
  const start = async (body: unknown) => await api.request('POST', BUILD, body);
  const answer = await start({
    ...{ fromImage: 'debian:13', steps: [], force: false, startCmd: 'serve', readyCmd: 'check', timeoutSeconds: 60 },
    fromImageRegistry: { type: 'registry', username: 'u', password: 'p' },
  });
  assert.deepEqual([answer.status, answer.text], [202, '']);
  assert.equal((await start({ fromImage: 'x', readyProbe: { port: 8080 } })).status, 202);
  const ids = { templateId: 't1', buildId: 'b1' };
  assert.deepEqual(api.images.started, [
    [
      ids,
      {
        ...{ image: 'debian:13', startCmd: 'serve', ready: { kind: 'command', cmd: 'check' }, timeoutMs: 60_000 },
        credentials: { kind: 'password', username: 'u', password: 'p' },
      },
    ],
    [ids, { image: 'x', startCmd: undefined, ready: { kind: 'http', port: 8080, path: '/' } }],
  ]);
});

test('what a build cannot do is refused by name, and no password comes back', async () => {
  await using api = apiFixture();
  for (const [body, message] of [
    [{ fromImage: 'x', steps: [{ type: 'RUN', args: ['true'] }] }, /body\.steps: not supported by this server: build/],
    [{ fromImage: 'x', fromTemplate: 'base' }, /body\.fromTemplate: not supported/],
    [{ fromTemplate: 'base' }, /body\.fromImage: required/],
    [{ fromImage: 'x', fromImageRegistry: { type: 'aws', awsRegion: 'secret-word' } }, /body\.fromImageRegistry/],
    [{ fromImage: 'x', readyCmd: 'a', readyProbe: { port: 1 } }, /not together with readyCmd/],
    [{ fromImage: 'x', readyProbe: { port: 1, path: 'no slash' } }, /body\.readyProbe\.path/],
    [{ fromImage: 'x', startCmd: 'a\0b' }, /zero byte/],
  ] as const) {
    const answer = await api.request('POST', BUILD, body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(String(answer.body.message), message);
    assert.doesNotMatch(answer.text, /secret-word/);
  }
  api.images.failure = new AenvError('template_building', 'busy');
  assert.equal((await api.request('POST', BUILD, { fromImage: 'x' })).status, 409);
  assert.deepEqual(api.images.started, []);
});

test('logs come from either end, by time, level and number', async () => {
  await using api = apiFixture();
  const entries = [1000, 2000, 3000].map((ms) => {
    return { timestamp: new Date(ms), level: 'info', message: `at ${ms}` } as const;
  });
  api.images.current = { ...api.images.current, entries };
  const messages = async (query: string) => {
    const { status, body } = await api.request('GET', `/templates/t1/builds/b1/logs${query}`);
    assert.equal(status, 200);
    return (body.logs as { message: string }[]).map(({ message }) => message);
  };
  assert.deepEqual(await messages(''), ['at 1000', 'at 2000', 'at 3000']);
  assert.deepEqual(await messages('?cursor=2000'), ['at 2000', 'at 3000']);
  assert.deepEqual(await messages('?direction=backward&limit=1'), ['at 3000']);
  assert.deepEqual(await messages('?direction=backward&cursor=2000'), ['at 2000', 'at 1000']);
  assert.equal((await api.request('GET', '/templates/t1/builds/other/logs')).status, 404);
  assert.equal((await api.request('GET', '/templates/t1/builds/b1/logs?limit=101')).status, 400);
});

test('a template is removed by id or alias, unless it is in use', async () => {
  await using api = apiFixture();
  const [template = fullTemplate()] = api.templates.templates;
  const path = `/templates/${template.aliases[0]}`;
  const answer = await api.request('DELETE', path);
  assert.deepEqual([answer.status, answer.text], [204, '']);
  assert.deepEqual(api.images.removed, [template.templateId]);
  assert.equal((await api.request('DELETE', '/templates/absent')).status, 404);
  // Of a build that failed there is nothing but its id.
  api.images.failed.add('t1');
  assert.equal((await api.request('DELETE', '/templates/t1')).status, 204);
  assert.equal((await api.request('DELETE', '/templates/t1')).status, 404);
  api.images.failure = new AenvError('template_in_use', 'used by i1', { details: { sandboxes: ['i1'] } });
  const refused = await api.request('DELETE', path);
  assert.deepEqual([refused.status, refused.body.error_code, refused.body.sandboxes], [400, 'template_in_use', ['i1']]);
});

test('a cold sandbox is made of an image, with sizes of its own; nothing is fetched for a bad request', async () => {
  await using api = apiFixture();
  const cold = async (body: unknown) => await api.request('POST', '/sandboxes-cold', body);
  const body = { image: 'debian:13', memoryMB: 256, diskSizeMB: 1024, timeout: 60, envVars: { A: '1' } };
  const { status, body: sandbox } = await cold({ ...body, allowInternetAccess: false });
  assert.equal(status, 201, JSON.stringify(sandbox));
  assert.deepEqual(api.images.cold, [['debian:13', { cpuCount: 1, memoryMb: 256, diskSizeMb: 1024 }]]);
  const [created] = api.sandboxes.created;
  assert.equal(created?.cold, true);
  assert.equal(created.template, 'template000000000000');
  assert.deepEqual([created.timeoutSeconds, created.allowInternetAccess, created.envVars], [60, false, { A: '1' }]);
  for (const bad of [
    {},
    { ...body, templateID: 'base' },
    { ...body, timeout: 0 },
    { ...body, network: { allowPublicTraffic: false } },
  ]) {
    assert.equal((await cold(bad)).status, 400, JSON.stringify(bad));
  }
  assert.equal(api.images.cold.length, 1);
  api.images.failure = new AenvError('image_not_found', 'no such image');
  assert.equal((await cold(body)).status, 404);
  assert.equal(api.sandboxes.created.length, 1);
});

test('tags are given, listed and removed; create and delete know them', async () => {
  await using api = apiFixture();
  const first = fullTemplate();
  const second = fullTemplate({ buildId: '3f6a0c8e-5a1b-4e8e-9a55-6f0f5b1f7a10', memoryMb: 1024 });
  api.templates.ledger.templates.put(second);
  api.templates.ledger.templates.put(first, ['old']);
  const given = await api.request('POST', '/templates/tags', { target: 'base:old', tags: ['V1', 'stable'] });
  assert.deepEqual([given.status, given.body], [201, { buildID: first.buildId, tags: ['v1', 'stable'] }]);
  const { list } = await api.request('GET', '/templates/base/tags');
  assert.deepEqual(
    list.map(({ tag, buildID }) => [tag, buildID]),
    [
      ['default', second.buildId],
      ['old', first.buildId],
      ['stable', first.buildId],
      ['v1', first.buildId],
    ],
  );
  assert.match(String(list[0]?.createdAt), /^\d{4}-.*Z$/);
  const { body } = await api.request('GET', '/templates/base');
  assert.deepEqual(
    (body.builds as { buildID: string }[]).map(({ buildID }) => buildID).sort(),
    [first.buildId, second.buildId].sort(),
  );
  for (const templateID of ['base:v1', 'default/base:stable', `${first.templateId}:old`]) {
    assert.equal((await api.request('POST', '/v2/sandboxes', { templateID })).status, 201, templateID);
  }
  assert.deepEqual((await api.request('POST', '/v2/sandboxes', { templateID: 'base:v9' })).status, 404);
  assert.equal((await api.request('GET', '/templates/aliases/base%3Av1')).status, 200);
  assert.equal((await api.request('GET', '/templates/aliases/base%3Av9')).status, 404);

  const remove = (name: string, tags: string[]) => api.request('DELETE', '/templates/tags', { name, tags });
  const gone = await remove('base', ['v1', 'stable', 'old']);
  assert.deepEqual([gone.status, gone.text], [204, '']);
  assert.deepEqual(
    api.templates.ledger.templates.versions().map(({ buildId }) => buildId),
    [second.buildId],
  );
  for (const [name, tags, status] of [
    ['base', ['default'], 400],
    ['base', ['v1'], 404],
    ['base', ['a b'], 400],
    ['base', [], 400],
    ['absent', ['v1'], 404],
    [':x', ['v1'], 400],
  ] as const) {
    assert.equal((await remove(name, [...tags])).status, status, `${name} ${tags}`);
  }
  assert.equal((await api.request('POST', '/templates/tags', { target: 'base:v1', tags: ['v2'] })).status, 404);
  assert.equal((await api.request('POST', '/templates/tags', { target: 'base', tags: [':x'] })).status, 400);
  await api.request('POST', '/templates/tags', { target: 'base', tags: ['v1'] });
  const version = await api.request('DELETE', '/templates/base%3Av1');
  assert.deepEqual([version.status, version.body.error_code], [400, 'invalid_request']);
  assert.equal((await api.request('DELETE', `/templates/${first.templateId}%3Adefault`)).status, 204);
});

test('a template is changed as far as there is something to change', async () => {
  await using api = apiFixture();
  const patched = await api.request('PATCH', '/v2/templates/base', { public: false });
  assert.deepEqual([patched.status, patched.body], [200, { names: ['default/base'] }]);
  assert.equal((await api.request('PATCH', '/templates/base', { public: false })).status, 200);
  const refused = await api.request('PATCH', '/v2/templates/base', { public: true });
  assert.equal(refused.status, 400);
  assert.match(String(refused.body.message), /public templates/);
  assert.equal((await api.request('PATCH', '/v2/templates/absent', {})).status, 404);
  const old = await api.request('POST', '/templates', { dockerfile: 'FROM x' });
  assert.equal(old.status, 501);
  assert.match(String(old.body.message), /POST \/v3\/templates/);
});
