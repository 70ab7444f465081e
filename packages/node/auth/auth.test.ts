import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { authenticate } from './authenticate.ts';
import { keyFile, loadApiKey } from './key-file.ts';
import { SingleKeyStore } from './key-store.ts';

describe('the API key of a node', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'aenv-auth-'));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it('is made once, in the form that clients check, and readable by its owner only', async () => {
    const first = await loadApiKey(home, {});
    assert.match(first.key, /^e2b_[0-9a-f]{64}$/);
    assert.equal(first.source, join(home, 'secrets', 'api-key'));
    assert.equal(statSync(keyFile(home)).mode & 0o777, 0o600);
    assert.equal(statSync(join(home, 'secrets')).mode & 0o777, 0o700);
    chmodSync(keyFile(home), 0o644);
    assert.deepEqual(await loadApiKey(home, { AENV_API_KEY: '' }), first);
    assert.equal(statSync(keyFile(home)).mode & 0o777, 0o600);
  });

  it('comes from the environment when it is there, without a file', async () => {
    const key = 'k'.repeat(32);
    assert.deepEqual(await loadApiKey(home, { AENV_API_KEY: key }), { key, source: 'AENV_API_KEY' });
    assert.throws(() => readFileSync(keyFile(home)), /ENOENT/);
  });

  it('is refused when it is too weak or damaged, without being shown', async () => {
    for (const bad of ['k'.repeat(31), `${'k'.repeat(32)} x`, 'k'.repeat(257), `${'ü'.repeat(40)}`]) {
      await assert.rejects(loadApiKey(home, { AENV_API_KEY: bad }), (error: unknown) => {
        assert.ok(error instanceof AenvError && error.code === 'config_invalid');
        return !`${error.message}${error.remediation}`.includes(bad);
      });
    }
    await loadApiKey(home, {});
    writeFileSync(keyFile(home), '');
    await assert.rejects(loadApiKey(home, {}), /api-key: not a usable API key/);
  });
});

describe('authentication of a request', () => {
  const key = `e2b_${'0a'.repeat(32)}`;
  const keys = new SingleKeyStore(key);
  const refused = (headers: Headers) =>
    assert.rejects(authenticate(headers, keys), (error: unknown) => error instanceof AenvError && error.status === 401);

  it('takes X-API-Key, and a bearer token in its absence', async () => {
    const caller = { keyId: 'default', team: 'default', key };
    assert.deepEqual(await authenticate(new Headers({ 'X-API-KEY': key }), keys), caller);
    assert.deepEqual(await authenticate(new Headers({ authorization: `bearer ${key}` }), keys), caller);
    const both = new Headers({ 'x-api-key': key, authorization: 'Bearer sk_e2b_other' });
    assert.deepEqual(await authenticate(both, keys), caller);
  });

  it('refuses none, wrong ones, other schemes and repeated headers', async () => {
    await refused(new Headers());
    const wrong = ['', key.slice(0, -1), `${key}0`, key.toUpperCase(), `e2b_${'0b'.repeat(32)}`, `${key}, ${key}`];
    for (const value of wrong) await refused(new Headers({ 'x-api-key': value }));
    const twice = new Headers({ 'x-api-key': key });
    twice.append('x-api-key', key);
    await refused(twice);
    await refused(new Headers({ authorization: `Basic ${key}` }));
    await refused(new Headers({ 'x-api-key': 'wrong', authorization: `Bearer ${key}` }));
  });
});
