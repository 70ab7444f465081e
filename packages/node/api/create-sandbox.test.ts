import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

describe('creating a sandbox', () => {
  let api: ApiFixture;
  beforeEach(() => {
    api = apiFixture();
  });
  afterEach(() => api[Symbol.asyncDispose]());

  const refused = async (path: string, body: unknown, ...parts: string[]) => {
    const answer = await api.request('POST', path, body);
    assert.equal(answer.status, 400, `${JSON.stringify(body)}: ${answer.text}`);
    assert.equal(answer.body.code, 400);
    for (const part of parts)
      assert.ok(String(answer.body.message).includes(part), `${answer.body.message} lacks ${part}`);
    return answer;
  };

  it('answers with what a client needs to reach it, and no domain where none leads here', async () => {
    const answer = await api.request('POST', '/v2/sandboxes', { templateID: 'base' });
    assert.equal(answer.status, 201);
    const { sandboxID, ...rest } = answer.body;
    assert.match(String(sandboxID), /^i[a-z0-9]{20}$/);
    assert.deepEqual(rest, {
      templateID: 'template000000000000',
      clientID: 'aenv',
      envdVersion: '0.6.13',
      alias: 'base',
      envdAccessToken: 'envd-token',
    });
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    await using named = apiFixture({ domain: 'sandbox.test' });
    assert.equal((await named.request('POST', '/sandboxes', { templateID: 'base' })).body.domain, 'sandbox.test');
  });

  it('has the defaults of each version', async () => {
    await api.request('POST', '/sandboxes', { templateID: ' Base ' });
    await api.request('POST', '/v2/sandboxes', { templateID: 'base', timeout: null, secure: true });
    const common = {
      template: 'base',
      metadata: {},
      envVars: {},
      allowInternetAccess: null,
      network: { allowPublicTraffic: true, httpsPorts: [] },
      onTimeout: 'kill',
      pauseMemory: true,
      autoResume: false,
    };
    assert.deepEqual(api.sandboxes.created, [
      { ...common, timeoutSeconds: 15, secure: false },
      { ...common, timeoutSeconds: 300, secure: true },
    ]);
  });

  it('takes a pause without memory at the end, and nothing that it excludes', async () => {
    const end = async (more: object) => await api.request('POST', '/v2/sandboxes', { templateID: 'base', ...more });
    assert.equal((await end({ autoPause: true, autoPauseMemory: false })).status, 201);
    assert.deepEqual([api.sandboxes.created[0]?.onTimeout, api.sandboxes.created[0]?.pauseMemory], ['pause', false]);
    for (const more of [{}, { autoPause: false }, { autoPause: true, autoResume: { enabled: true } }]) {
      const { status, body } = await end({ ...more, autoPauseMemory: false });
      assert.equal(status, 400);
      assert.match(String(body.message), /^body\.auto(PauseMemory|Resume)/);
    }
  });

  it('passes every option on', async () => {
    const answer = await api.request('POST', '/sandboxes', {
      templateID: 'default/base:default',
      timeout: 86_400,
      secure: true,
      metadata: { a: 'b' },
      envVars: { C: 'd' },
      allow_internet_access: false,
      network: { allowPublicTraffic: false, maskRequestHost: 'localhost', httpsPorts: [443] },
      autoPause: true,
      autoPauseMemory: true,
      autoResume: { enabled: true },
    });
    assert.equal(answer.body.trafficAccessToken, 'traffic-token');
    assert.deepEqual(api.sandboxes.created, [
      {
        template: 'default/base:default',
        timeoutSeconds: 86_400,
        secure: true,
        metadata: { a: 'b' },
        envVars: { C: 'd' },
        allowInternetAccess: false,
        network: { allowPublicTraffic: false, maskRequestHost: 'localhost', httpsPorts: [443] },
        onTimeout: 'pause',
        pauseMemory: true,
        autoResume: true,
      },
    ]);
  });

  it('T39: checks the time to live', async () => {
    for (const path of ['/sandboxes', '/v2/sandboxes']) {
      const create = (timeout: unknown) => ({ templateID: 'base', timeout });
      await refused(path, create(0), 'body.timeout', 'Timeout must be greater than 0');
      await refused(path, create(-1), 'body.timeout', 'Timeout must be greater than 0');
      assert.equal((await refused(path, create(1e12), 'body.timeout', '86400')).body.error_code, 'invalid_timeout');
      await refused(path, create(86_401), 'body.timeout');
      for (const bad of ['5', 1.5, true, [], {}, 1e300]) await refused(path, create(bad), 'body.timeout');
      await refused(path, `{"templateID":"base","timeout":NaN}`, 'not valid JSON');
    }
    assert.deepEqual(api.sandboxes.created, []);
  });

  it('T39: names unknown fields and wrong types by path', async () => {
    await refused('/sandboxes', { templateID: 'base', nope: 1 }, 'body.nope: unknown field');
    await refused('/sandboxes', { templateID: 'base', network: { foo: 1 } }, 'body.network.foo: unknown field');
    await refused(
      '/sandboxes',
      { templateID: 'base', network: { httpsPorts: [1, 'x'] } },
      'body.network.httpsPorts[1]',
    );
    await refused('/sandboxes', {}, 'body.templateID: required');
    await refused('/sandboxes', { templateID: null }, 'body.templateID: expected string, received null');
    await refused('/sandboxes', { templateID: 'base', metadata: { a: 1 } }, 'body.metadata.a: expected string');
    await refused('/sandboxes', { templateID: 'base', envVars: { '1': 'x' } }, 'body.envVars.1: not a name');
    await refused('/sandboxes', { templateID: 'base', secure: 'yes' }, 'body.secure: expected boolean');
    await refused('/v2/sandboxes', { templateID: 'base', secure: false }, 'body.secure', 'always secured');
    await refused('/sandboxes', [], 'body: expected object');
    await refused('/sandboxes', 'null', 'body: expected object');
    await refused('/sandboxes', '', 'body: required');
    await refused('/sandboxes', { templateID: 'a b' }, 'body.templateID', 'bad template reference');
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${'k'.repeat(1000)}${n}`, 1]));
    const answer = await refused('/sandboxes', { templateID: 'base', ...many }, 'and 45 more');
    assert.ok(answer.text.length < 2000);
  });

  it('refuses what is known and not served, and a private sandbox without a secured agent', async () => {
    const unserved = { templateID: 'base', mcp: { a: 1 } };
    const answer = await refused('/v2/sandboxes', unserved, 'body.mcp', 'MCP gateway');
    assert.equal(answer.body.error_code, 'unsupported_field');
    const mixed = await refused('/v2/sandboxes', { ...unserved, x: 1 }, 'body.x', 'body.mcp');
    assert.equal(mixed.body.error_code, 'invalid_request');
    const open = { templateID: 'base', network: { allowPublicTraffic: false } };
    await refused('/sandboxes', open, 'body.network.allowPublicTraffic', 'secured');
    assert.equal((await api.request('POST', '/v2/sandboxes', open)).status, 201);
  });

  it('answers 404 with an int code for an unknown template', async () => {
    const answer = await api.request('POST', '/sandboxes', { templateID: 'nothing' });
    assert.equal(answer.status, 404);
    assert.equal(answer.body.code, 404);
    assert.equal(answer.body.message, "template 'nothing' not found");
  });

  it('answers faults as JSON without their cause, and logs them once with the request id', async () => {
    api.sandboxes.failure = new Error('inner detail');
    const answer = await api.request('POST', '/sandboxes', { templateID: 'base' });
    assert.equal(answer.status, 500);
    assert.equal(answer.body.error_code, 'internal');
    assert.ok(!answer.text.includes('inner detail'));
    assert.equal(answer.body.request_id, answer.headers.get('x-request-id'));
    const errors = api.logLines.filter((line) => JSON.parse(line).level === 'error');
    assert.equal(errors.length, 1);
    assert.ok(errors[0]?.includes('inner detail') && errors[0].includes(String(answer.body.request_id)));
    api.sandboxes.failure = new AenvError('capacity_exhausted', 'no room');
    assert.equal((await api.request('POST', '/sandboxes', { templateID: 'base' })).status, 503);
  });
});
