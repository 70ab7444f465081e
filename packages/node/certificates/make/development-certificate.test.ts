import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, mock, test } from 'node:test';
import { ensureDevelopmentCertificate } from './development-certificate.ts';

const DAY_MS = 86_400_000;

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'aenv-cert-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const leafOf = async (path: string) => new X509Certificate(await readFile(path));

test('a first call makes an authority and a certificate of it for the domain, its wildcard and this host', async () => {
  const { authority, cert, key, made } = await ensureDevelopmentCertificate({ domain: 'one.test', dir });
  assert.deepEqual(made, { authority: true, certificate: true });
  const [ca, leaf] = [await leafOf(authority), await leafOf(cert)];
  assert.ok(leaf.verify(ca.publicKey) && leaf.checkIssued(ca));
  assert.deepEqual([ca.ca, leaf.ca], [true, false]);
  for (const name of ['one.test', 'api.one.test', '49983-ia.one.test', 'sandbox.one.test', 'localhost']) {
    assert.ok(leaf.checkHost(name) !== undefined, name);
  }
  for (const name of ['two.test', 'a.b.one.test']) assert.equal(leaf.checkHost(name), undefined, name);
  assert.deepEqual([leaf.checkIP('127.0.0.1'), leaf.checkIP('127.0.0.2')], ['127.0.0.1', undefined]);
  for (const path of [key, join(dir, 'ca-key.pem')]) assert.equal((await stat(path)).mode & 0o777, 0o600, path);
  assert.deepEqual((await readdir(dir)).sort(), ['ca-key.pem', 'ca.pem', 'cert.pem', 'key.pem']);
});

test('a good certificate is kept, one for another domain is made by the same authority', async () => {
  const before = await ensureDevelopmentCertificate({ domain: 'one.test', dir });
  assert.deepEqual(before.made, { authority: false, certificate: false });
  const ca = await leafOf(before.authority);
  const other = await ensureDevelopmentCertificate({ domain: 'two.test', dir });
  assert.deepEqual(other.made, { authority: false, certificate: true });
  assert.equal((await leafOf(other.authority)).fingerprint256, ca.fingerprint256);
});

test('what is near its end is renewed: the certificate by the authority, the authority as a whole', async (t) => {
  t.after(() => mock.timers.reset());
  const { cert } = await ensureDevelopmentCertificate({ domain: 'two.test', dir });
  const end = Date.parse((await leafOf(cert)).validTo);
  mock.timers.enable({ apis: ['Date'], now: end - 31 * DAY_MS });
  assert.equal((await ensureDevelopmentCertificate({ domain: 'two.test', dir })).made.certificate, false);
  mock.timers.setTime(end - 29 * DAY_MS);
  const renewed = await ensureDevelopmentCertificate({ domain: 'two.test', dir });
  assert.deepEqual(renewed.made, { authority: false, certificate: true });
  mock.timers.setTime(Date.parse((await leafOf(renewed.authority)).validTo) - 300 * DAY_MS);
  const anew = await ensureDevelopmentCertificate({ domain: 'two.test', dir });
  assert.deepEqual(anew.made, { authority: true, certificate: true });
});

test('half a pair is left alone', async () => {
  await rm(join(dir, 'key.pem'));
  await assert.rejects(ensureDevelopmentCertificate({ domain: 'two.test', dir }), {
    code: 'config_invalid',
    message: /key\.pem is missing beside .*cert\.pem/,
  });
});
