import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, mock, test } from 'node:test';
import { readPair } from '../../certificates/read-pair.ts';
import { certificateFolder, DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { loadConfig } from '../../config/load.ts';
import { checkCertificate } from './certificate-check.ts';

const DAY_MS = 86_400_000;

let dir = '';
before(async () => {
  ({ dir } = await certificateFolder());
});
after(() => rm(dir, { recursive: true, force: true }));

function check(domains: string, home = '/var/lib/aenv', key = join(dir, 'key.pem')) {
  const env = {
    ...{ AENV_HOME: home, AENV_PROXY_DOMAINS: domains },
    ...{ AENV_TLS_CERT: join(dir, 'cert.pem'), AENV_TLS_KEY: key },
  };
  const certificate = async (files: { cert: string; key: string }) => (await readPair(files)).leaf;
  return checkCertificate({ config: loadConfig({ env }), probes: { certificate } });
}

test('a certificate in order says until when and for what it is good', async () => {
  const [finding] = await check(`${DOMAIN}:8443`);
  assert.equal(finding?.status, 'ok', finding?.detail);
  assert.match(finding?.detail ?? '', /valid until 20\d\d-\d\d-\d\d; some\.test:8443/);
});

test('without HTTPS there is nothing to find', async () => {
  const config = loadConfig({ env: { AENV_HOME: '/nowhere' } });
  assert.deepEqual(await checkCertificate({ config, probes: { certificate: () => assert.fail('read') } }), []);
});

test('a domain that the certificate does not hold for is a fault', async () => {
  const [finding] = await check(`${DOMAIN},other.test:8443`);
  assert.equal(finding?.status, 'fail');
  assert.match(finding?.detail ?? '', /\*\.other\.test$/);
});

test('an end that is near is a warning, one that has passed a fault; the own one is renewed by a command', async (t) => {
  const { validTo } = new X509Certificate(await readFile(join(dir, 'cert.pem')));
  const end = Date.parse(validTo);
  t.after(() => mock.timers.reset());
  for (const [days, status] of [
    [15, 'ok'],
    [13, 'warn'],
    [-1, 'fail'],
    [500, 'fail'],
  ] as const) {
    mock.timers.reset();
    mock.timers.enable({ apis: ['Date'], now: end - days * DAY_MS });
    const [finding] = await check(DOMAIN);
    assert.equal(finding?.status, status, `${days} days: ${finding?.detail}`);
  }
});

test('files that do not belong together are told', async () => {
  await assert.rejects(check(DOMAIN, '/x', join(dir, 'ca-key.pem')), {
    code: 'config_invalid',
    message: /is not the key/,
  });
});
