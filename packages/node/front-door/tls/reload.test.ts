import assert from 'node:assert/strict';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ensureDevelopmentCertificate } from '../../certificates/make/development-certificate.ts';
import { DOMAIN } from '../../certificates/testing/certificate-folder.ts';
import { Http2Client, openTlsHouse, type TlsHouse, tlsTo } from '../testing/tls-clients.ts';

async function serialNow(tls: TlsHouse): Promise<string> {
  const socket = await tlsTo(tls, `api.${DOMAIN}`, 'http/1.1');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

async function untilSerialIsNot(tls: TlsHouse, old: string): Promise<void> {
  for (let i = 0; i < 250; i++) {
    if ((await serialNow(tls)) !== old) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail('the certificate was not replaced within 5 s');
}

test('a certificate that was replaced serves new connections, and open ones go on', async () => {
  await using tls = await openTlsHouse();
  const before = await serialNow(tls);
  using client = await Http2Client.open(tls, `api.${DOMAIN}`);
  assert.equal((await client.ask({})).body.toString(), 'control');

  await rm(join(tls.dir, 'cert.pem'));
  await rm(join(tls.dir, 'key.pem'));
  const { made } = await ensureDevelopmentCertificate({ domain: DOMAIN, dir: tls.dir });
  assert.deepEqual(made, { authority: false, certificate: true });
  await untilSerialIsNot(tls, before);
  assert.equal((await client.ask({})).body.toString(), 'control');
});

test('a pair that does not fit together is not taken, and the next good one is', async () => {
  await using tls = await openTlsHouse();
  const before = await serialNow(tls);
  await copyFile(join(tls.dir, 'ca.pem'), join(tls.dir, 'cert.pem'));
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(await serialNow(tls), before);
  await writeFile(join(tls.dir, 'key.pem'), 'no key');
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(await serialNow(tls), before);

  await rm(join(tls.dir, 'cert.pem'));
  await rm(join(tls.dir, 'key.pem'));
  await ensureDevelopmentCertificate({ domain: DOMAIN, dir: tls.dir });
  await untilSerialIsNot(tls, before);
});
