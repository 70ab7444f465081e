import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadConfig } from '../../config/load.ts';
import { RecordedOutput } from '../testing/recorded-output.ts';
import { cert } from './cert.ts';

let home = '';
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'aenv-cert-'));
});
after(() => rm(home, { recursive: true, force: true }));

async function call(env: Record<string, string>, domain?: string): Promise<string> {
  const output = new RecordedOutput();
  await cert({
    ...{ config: loadConfig({ env: { AENV_HOME: home, ...env } }), output, signal: new AbortController().signal },
    ...(domain === undefined ? {} : { domain }),
  });
  return output.outLines.join('\n');
}

test('the lines to set for the daemon are a configuration that serves the certificate', async () => {
  const text = await call({ AENV_TLS_LISTEN: '127.0.0.1:9443' }, 'my.test');
  assert.match(
    text,
    /^New certificate for my\.test and \*\.my\.test, valid until \d{4}-\d\d-\d\d\.\nNew private authority: /,
  );
  assert.match(text, /export E2B_DOMAIN=my\.test:9443\n/);
  assert.match(text, new RegExp(`NODE_EXTRA_CA_CERTS=${join(home, 'tls', 'ca.pem')}`));
  const lines = text.split('\n').filter((line) => /^ {2}(\[|cert|key|domains)/.test(line));
  const file = join(home, 'printed.toml');
  await writeFile(file, lines.join('\n'));
  const { tls, proxy } = loadConfig({ env: {}, file });
  assert.deepEqual([tls.cert, tls.key], [join(home, 'tls', 'cert.pem'), join(home, 'tls', 'key.pem')]);
  assert.deepEqual(proxy.domains, ['my.test:9443']);

  const again = await call({ AENV_CONFIG: file });
  assert.match(again, /^Certificate for my\.test /, 'the domain of the configuration, nothing new');
  assert.match(again, /\nThe daemon serves this certificate/);
});
