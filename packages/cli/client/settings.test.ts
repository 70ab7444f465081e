import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { CliError } from '../output/cli-error.ts';
import { writeCredentials } from './credentials.ts';
import { resolveSettings } from './settings.ts';

let home: string;
let env: Record<string, string>;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'cli-settings-'));
  env = { XDG_CONFIG_HOME: join(home, 'config'), AENV_HOME: join(home, 'lib'), AENV_RUNTIME: join(home, 'run') };
});
afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

const stored = () => join(home, 'config', 'aenv', 'credentials.json');

test('flags win over the environment, which wins over the stored credentials', async () => {
  await writeCredentials(stored(), { url: 'http://stored:1', apiKey: 'k-stored' });
  assert.deepEqual(await resolveSettings({}, env), { url: 'http://stored:1', apiKey: 'k-stored' });
  const named = { ...env, AENV_URL: 'http://named:2/', AENV_API_KEY: 'k-named' };
  assert.deepEqual(await resolveSettings({}, named), { url: 'http://named:2', apiKey: 'k-named' });
  const flags = { url: 'https://flag:3', apiKey: 'k-flag' };
  assert.deepEqual(await resolveSettings(flags, named), flags);
});

test('a stored key never goes to another server', async () => {
  await writeCredentials(stored(), { url: 'http://stored:1', apiKey: 'k-stored' });
  await assert.rejects(resolveSettings({ url: 'http://elsewhere:1' }, env), CliError);
});

test('on the host of the daemon nothing needs to be set', async () => {
  await mkdir(join(home, 'lib', 'secrets'), { recursive: true });
  await mkdir(join(home, 'run'));
  await writeFile(join(home, 'lib', 'secrets', 'api-key'), 'k-local\n');
  await writeFile(join(home, 'run', 'daemon.json'), JSON.stringify({ url: 'http://127.0.0.1:8123' }));
  assert.deepEqual(await resolveSettings({}, env), { url: 'http://127.0.0.1:8123', apiKey: 'k-local' });
  await assert.rejects(resolveSettings({ url: 'http://remote:8000' }, env), CliError);
});

test('credentials are readable to their owner only, and damaged ones are told', async () => {
  await writeCredentials(stored(), { url: 'http://stored:1', apiKey: 'k' });
  assert.equal((await stat(stored())).mode & 0o777, 0o600);
  await writeFile(stored(), '{"url": 5}');
  await assert.rejects(resolveSettings({}, env), /damaged/);
});

test('an address that is no URL is refused', async () => {
  await assert.rejects(resolveSettings({ url: 'localhost:8000', apiKey: 'k' }, env), CliError);
});
