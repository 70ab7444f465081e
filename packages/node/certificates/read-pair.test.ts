import assert from 'node:assert/strict';
import { chmod, copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readPair } from './read-pair.ts';
import { certificateFolder } from './testing/certificate-folder.ts';

let dir = '';
before(async () => {
  ({ dir } = await certificateFolder());
});
after(() => rm(dir, { recursive: true, force: true }));
const at = (name: string) => join(dir, name);

test('a certificate and its key are read', async () => {
  const { cert, key, leaf } = await readPair({ cert: at('cert.pem'), key: at('key.pem') });
  assert.match(cert, /^-----BEGIN CERTIFICATE/);
  assert.match(key, /^-----BEGIN PRIVATE KEY/);
  assert.equal(leaf.checkHost('80-ia.some.test'), '*.some.test');
});

test('a key that every user may read or write is refused with the remedy', async () => {
  await copyFile(at('key.pem'), at('open.pem'));
  for (const mode of [0o644, 0o602]) {
    await chmod(at('open.pem'), mode);
    await assert.rejects(readPair({ cert: at('cert.pem'), key: at('open.pem') }), {
      code: 'config_invalid',
      message: /tls\.key: .*open\.pem is open to every user/,
      remediation: `Run: chmod 600 ${at('open.pem')}`,
    });
  }
  await chmod(at('open.pem'), 0o640);
  await readPair({ cert: at('cert.pem'), key: at('open.pem') });
});

test('what is absent, no PEM, or of another pair is told by the key of the configuration, without its content', async () => {
  await writeFile(at('text.pem'), 'SECRET', { mode: 0o600 });
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ['absent.pem', 'key.pem', /^tls\.cert: .*absent\.pem cannot be read \(ENOENT\)/],
    ['cert.pem', 'absent.pem', /^tls\.key: .*absent\.pem cannot be read \(ENOENT\)/],
    ['text.pem', 'key.pem', /^tls\.cert: .* is no certificate/],
    ['cert.pem', 'text.pem', /^tls\.key: .* is no private key/],
    ['cert.pem', 'ca-key.pem', /^tls\.key: .* is not the key of the certificate/],
  ];
  for (const [cert, key, message] of wrong) {
    await assert.rejects(readPair({ cert: at(cert), key: at(key) }), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(String(error.stack), /SECRET/);
      return true;
    });
  }
});
