import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import type { FaultFront } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { bytesOf, RegistryFixture } from '../testing/registry-fixture.ts';

const DATA = randomBytes(50_000);
const BLOB = { digest: digestOf(DATA), size: DATA.length };

let fixture: RegistryFixture;
let front: FaultFront;
let ca = '';

before(async () => {
  fixture = await RegistryFixture.start();
  await pushBlob({ base: fixture.base, repository: 'r' }, DATA);
  ca = join(fixture.dir, 'ca.pem');
  const key = join(fixture.dir, 'key.pem');
  await run([
    ...(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'] as const),
    ...['-keyout', key, '-out', ca, '-days', '2', '-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'],
  ]);
  front = await fixture.front({ tls: { cert: await readFile(ca), key: await readFile(key) } });
});
after(() => fixture.close());

const read = (insecure: readonly string[], entries: readonly string[]) =>
  bytesOf(fixture.client(insecure, { ca: entries }).repository(front.host, 'r').blob(BLOB));

test('a certificate of an unknown authority is refused, with what helps', async () => {
  await assert.rejects(read([], []), (error: Error) => {
    assert.match(error.message, new RegExp(`^${front.host}: its certificate is not trusted`));
    return 'remediation' in error && /registry\.ca/.test(String(error.remediation));
  });
});

test('an authority of its own makes a registry trusted, and no other', async () => {
  assert.deepEqual(await read([], [`${front.host}=${ca}`]), DATA);
  await assert.rejects(read([], [`localhost:1=${ca}`]), { code: 'registry_untrusted' });
  await assert.rejects(read([], [`${front.host}=${ca}.missing`]), { code: 'config_invalid', message: /registry\.ca/ });
});

test('an insecure registry is used over TLS, whatever its certificate, or over HTTP', async () => {
  assert.deepEqual(await read([front.host], []), DATA);
  const plain = fixture.client([fixture.registry.host]).repository(fixture.registry.host, 'r');
  assert.deepEqual(await bytesOf(plain.blob(BLOB)), DATA);
});

test('plain HTTP is not spoken with a registry that is not said to be insecure', async () => {
  const { host } = fixture.registry;
  await assert.rejects(bytesOf(fixture.client([]).repository(host, 'r').blob(BLOB)), (error: Error) => {
    assert.match(error.message, /does not speak TLS/);
    return 'remediation' in error && /registry\.insecure/.test(String(error.remediation));
  });
});

test('from TLS nothing leads to HTTP: neither a redirect nor a token server', async () => {
  const entries = [`${front.host}=${ca}`];
  front.rule = (exchange) => {
    if (exchange.url.pathname.includes('blobs')) exchange.reply(307, { location: `${fixture.base}/v2/` });
  };
  await assert.rejects(read([], entries), { code: 'registry_unavailable', message: /not HTTPS/ });
  front.rule = (exchange) =>
    exchange.reply(401, { 'www-authenticate': `Bearer realm="${fixture.base}/token?a=canary"` });
  await assert.rejects(read([], entries), (error: Error) => {
    assert.ok(!error.message.includes('canary'));
    return 'code' in error && error.code === 'registry_auth' && /not HTTPS/.test(error.message);
  });
  front.rule = () => {};
});
