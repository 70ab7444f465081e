import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { configurationPage } from './generate-docs.ts';
import { configKeys } from './keys.ts';
import { loadConfig } from './load.ts';

describe('configuration', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'aenv-config-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (text: string): string => {
    const path = join(folder, 'config.toml');
    writeFileSync(path, text);
    return path;
  };
  const refused = (load: () => unknown, ...parts: string[]) =>
    assert.throws(load, (error: unknown) => {
      assert.ok(error instanceof AenvError && error.code === 'config_invalid', String(error));
      for (const part of parts) assert.ok(error.message.includes(part), `${error.message} lacks ${part}`);
      return true;
    });
  const env = { AENV_HOME: '/nowhere/aenv' };

  it('has a default for everything', () => {
    const config = loadConfig({ env: {} });
    assert.equal(config.home, '/var/lib/aenv');
    assert.equal(config.runtime, '/run/aenv');
    assert.equal(config.assets, '/var/lib/aenv/assets');
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8000 });
    assert.equal(config.limits.maxTimeoutSeconds, 86_400);
    assert.equal(config.limits.jsonBodyBytes, 1024 * 1024);
    assert.deepEqual(config.proxy.domains, []);
    assert.equal(config.vmm.accelerator, 'auto');
    assert.equal(config.vmm.qemu, undefined);
  });

  it('takes the file over defaults, the environment over the file, flags over all', () => {
    const path = file(
      'listen = "0.0.0.0:1"\n[limits]\nmax_sandboxes = 5\nmax_concurrent_starts = 2\n[log]\nlevel = "warn"\n',
    );
    const sources = {
      env: { ...env, AENV_LIMITS_MAX_SANDBOXES: '6', AENV_LOG_LEVEL: 'error', AENV_LISTEN: '' },
      file: path,
    };
    const config = loadConfig({ ...sources, flags: { 'log.level': 'debug', assets: undefined } });
    assert.deepEqual(config.listen, { host: '0.0.0.0', port: 1 });
    assert.equal(config.limits.maxConcurrentStarts, 2);
    assert.equal(config.limits.maxSandboxes, 6);
    assert.equal(config.log.level, 'debug');
    assert.equal(config.assets, '/nowhere/aenv/assets');
  });

  it('finds the file in AENV_CONFIG and in the home folder, and says when a named one is missing', () => {
    const path = file('[proxy]\ndomains = ["Sandbox.Example.com"]\n');
    for (const place of [{ AENV_CONFIG: path }, { AENV_HOME: folder }]) {
      assert.deepEqual(loadConfig({ env: place }).proxy.domains, ['sandbox.example.com']);
    }
    assert.deepEqual(loadConfig({ env, flags: { home: folder } }).proxy.domains, ['sandbox.example.com']);
    refused(() => loadConfig({ env, file: join(folder, 'absent.toml') }), 'absent.toml', 'does not exist');
  });

  it('reads lists, numbers and addresses from text', () => {
    const config = loadConfig({
      env: {
        ...env,
        AENV_PROXY_DOMAINS: 'a.test, b.test:8443',
        AENV_NETWORK_ALWAYS_DENIED_CIDRS: '10.0.0.0/8, 192.0.2.0/24',
        AENV_LIMITS_MEMORY_SHARE: '0.25',
        AENV_LISTEN: '[::1]:0',
      },
    });
    assert.deepEqual(config.proxy.domains, ['a.test', 'b.test:8443']);
    assert.deepEqual(config.network.alwaysDeniedCidrs, ['10.0.0.0/8', '192.0.2.0/24']);
    assert.equal(config.limits.memoryShare, 0.25);
    assert.deepEqual(config.listen, { host: '::1', port: 0 });
  });

  it('takes a certificate only together with its key', () => {
    const both = loadConfig({ env: { ...env, AENV_TLS_CERT: '/c.pem', AENV_TLS_KEY: '/k.pem' } });
    assert.deepEqual(both.tls, { cert: '/c.pem', key: '/k.pem', listen: { host: '127.0.0.1', port: 8443 } });
    refused(() => loadConfig({ env: { ...env, AENV_TLS_CERT: '/c.pem' } }), 'tls.key', 'together with tls.cert');
    refused(() => loadConfig({ env: { ...env, AENV_TLS_KEY: '/k.pem' } }), 'tls.cert', 'together with tls.key');
  });

  it('refuses unknown keys by name and suggests the meant one', () => {
    refused(() => loadConfig({ env, file: file('lisen = "x"') }), 'lisen', 'did you mean listen?');
    refused(
      () => loadConfig({ env, file: file('[limits]\nmax_sandboxs = 1') }),
      'limits.max_sandboxs',
      'did you mean limits.max_sandboxes?',
    );
    refused(
      () => loadConfig({ env, file: file('[entirely.other]\nthing = 1') }),
      'entirely.other.thing',
      'unknown key',
    );
    refused(() => loadConfig({ env, flags: { nope: '1' } }), 'nope (command line)');
    refused(
      () => loadConfig({ env: { AENV_LIMITS_MAX_SANDBOXS: '1' } }),
      'AENV_LIMITS_MAX_SANDBOXS',
      'did you mean AENV_LIMITS_MAX_SANDBOXES?',
    );
    const others = {
      AENV_API_KEY: 'k',
      AENV_URL: 'u',
      AENV_CONFIG: '',
      AENV_SERVICE_HOST: 'h',
      AENV_PORT: 'tcp://h:1',
    };
    assert.equal(loadConfig({ env: { ...env, ...others } }).home, '/nowhere/aenv');
    refused(() => loadConfig({ env, file: file('["__proto__"]\nhome = "/x"') }), '__proto__');
  });

  it('names the key and its origin when a value is bad', () => {
    const path = file('[limits]\nmax_sandboxes = "5"');
    refused(() => loadConfig({ env, file: path }), 'limits.max_sandboxes', path);
    const bad: Record<string, string> = {
      AENV_LIMITS_MAX_SANDBOXES: '0',
      AENV_LIMITS_JSON_BODY_BYTES: '1e6',
      AENV_VMM_BOOT_TIMEOUT_MS: 'soon',
      AENV_VMM_ACCELERATOR: 'xen',
      AENV_RUNTIME: 'relative/path',
      AENV_NETWORK_CIDR: '10.0.0.0/33',
      AENV_NETWORK_SLOTS_LOW: '100',
      AENV_PROXY_DOMAINS: 'a b',
      AENV_LIMITS_MEMORY_SHARE: 'NaN',
    };
    for (const [name, value] of Object.entries(bad)) {
      const key = configKeys().find((candidate) => candidate.env === name)?.name ?? 'no such key';
      refused(() => loadConfig({ env: { ...env, [name]: value } }), key);
    }
    for (const listen of [
      '8000',
      ':8000',
      '127.0.0.1',
      '127.0.0.1:65536',
      '::1:80',
      '[127.0.0.1]:80',
      'a b:1',
      'h:-1',
    ]) {
      refused(() => loadConfig({ env, flags: { listen } }), 'listen (command line)');
    }
  });

  it('refuses a user of all disks whom a VM could run as', () => {
    refused(() => loadConfig({ env: { ...env, AENV_STORAGE_UID: '790005' } }), 'storage.uid');
  });

  it('names the line of broken TOML', () => {
    refused(() => loadConfig({ env, file: file('home = "/x"\nlisten = \n') }), 'config.toml, line 2');
  });

  it('is documented key by key, with environment names that do not clash', () => {
    const keys = configKeys();
    const page = configurationPage();
    for (const key of keys) assert.ok(page.includes(`| \`${key.name}\` |`), key.name);
    assert.equal(new Set(keys.map((key) => key.env)).size, keys.length);
    assert.ok(keys.length > 20);
    assert.equal(keys.find((key) => key.name === 'limits.max_sandboxes')?.env, 'AENV_LIMITS_MAX_SANDBOXES');
  });
});
