import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { type Logger, silentLogger } from '@aenv/platform/observability/logger.ts';
import { DockerCredentials, dockerConfigFile } from './docker-credentials.ts';
import { askHelper } from './helper.ts';

let dir = '';
let env: NodeJS.ProcessEnv = {};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-credentials-'));
  await mkdir(join(dir, 'bin'));
  env = { PATH: `${join(dir, 'bin')}:${process.env.PATH}`, ASKED: join(dir, 'asked') };
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function source(config: unknown, log: Logger = silentLogger): Promise<DockerCredentials> {
  const file = join(dir, 'config.json');
  await writeFile(file, typeof config === 'string' ? config : JSON.stringify(config));
  return new DockerCredentials({ file, clock: systemClock, log, env });
}

/** A helper that notes what it is asked, then does what the lines say. */
async function helper(name: string, ...lines: string[]): Promise<void> {
  const text = ['#!/bin/sh', 'read -r server', 'echo "$1 $server" >>"$ASKED"', ...lines, ''].join('\n');
  await writeFile(join(dir, 'bin', `docker-credential-${name}`), text, { mode: 0o755 });
}

const password = (username: string, secret: string) => ({ kind: 'password', username, password: secret });
const auth = (text: string) => ({ auth: Buffer.from(text).toString('base64') });

test('what docker login has left is found, by host or by its URL', async () => {
  const found = await source({
    auths: {
      'https://index.docker.io/v1/': auth('hub:a:b'),
      'localhost:5000': { username: 'u', password: 'p' },
      'https://corp.example/v2/': auth('corp:c'),
      'tokens.example': { identitytoken: 'i', auth: '' },
      'ready.example': { registrytoken: 'r' },
      'empty.example': {},
      'padded.example': auth('x:y\0\0'),
    },
  });
  const cases: [string, unknown][] = [
    ['docker.io', password('hub', 'a:b')],
    ['localhost:5000', password('u', 'p')],
    ['corp.example', password('corp', 'c')],
    ['tokens.example', { kind: 'identity-token', token: 'i' }],
    ['ready.example', { kind: 'registry-token', token: 'r' }],
    ['empty.example', undefined],
    ['padded.example', password('x', 'y')],
    ['localhost', undefined],
    ['evil-corp.example', undefined],
  ];
  for (const [host, expected] of cases) assert.deepEqual(await found.find(host, 'a/b'), expected, host);
});

test('credentials for a part of a registry count there, the longest part first', async () => {
  const found = await source({
    auths: { 'h.example': auth('all:1'), 'h.example/a': auth('a:2'), 'h.example/a/b': auth('ab:3') },
  });
  assert.deepEqual(await found.find('h.example', 'a/b/c'), password('ab', '3'));
  assert.deepEqual(await found.find('h.example', 'a/bc'), password('a', '2'));
  assert.deepEqual(await found.find('h.example', 'x'), password('all', '1'));
});

test('a helper of a host comes before the general one, and that before the file', async () => {
  await helper('own', `echo '{"ServerURL":"x","Username":"own","Secret":"1"}'`);
  await helper(
    'all',
    'case $server in *other*) echo "credentials not found in native keychain"; exit 1;; esac',
    `echo '{"Username":"<token>","Secret":"2"}'`,
  );
  const found = await source({
    credHelpers: { 'own.example': 'own' },
    credsStore: 'all',
    auths: { 'own.example': auth('no:no'), 'other.example': auth('file:3') },
  });
  assert.deepEqual(await found.find('own.example', 'a'), password('own', '1'));
  assert.deepEqual(await found.find('docker.io', 'library/a'), { kind: 'identity-token', token: '2' });
  assert.deepEqual(await found.find('other.example', 'a'), password('file', '3'));
  assert.deepEqual(await found.find('own.example', 'b'), password('own', '1'));
  assert.equal(
    await readFile(join(dir, 'asked'), 'utf8'),
    'get own.example\nget https://index.docker.io/v1/\nget other.example\n',
  );
});

test('a helper that fails, hangs or is missing is named, and what it printed is not told', async () => {
  await helper('broken', 'echo canary; exit 1');
  await helper('babble', 'echo canary');
  await helper('slow', 'exec sleep 60');
  const ask = (name: string) => askHelper(name, 'h', { env, timeoutMs: 300 });
  for (const [name, why] of [
    ['broken', /exit code 1/],
    ['babble', /not of the agreed form/],
    ['slow', /in time/],
    ['absent', /not installed/],
    ['../../bin/sh', /not that of a program/],
  ] as const) {
    await assert.rejects(ask(name), (error: Error) => {
      assert.match(error.message, why);
      assert.ok(!error.message.includes('canary'));
      return 'code' in error && error.code === 'registry_auth';
    });
  }
});

test('a missing file means no credentials; a damaged one too, with a warning that quotes nothing of it', async () => {
  const warnings: string[] = [];
  const log = {
    ...silentLogger,
    warn: (message: string, fields?: object) => warnings.push(message + JSON.stringify(fields)),
  };
  const none = new DockerCredentials({ file: join(dir, 'absent'), clock: systemClock, log });
  assert.equal(await none.find('h', 'r'), undefined);
  assert.equal(warnings.length, 0);
  assert.equal(await (await source('{"auths": canary', log)).find('h', 'r'), undefined);
  assert.equal(await (await source({ auths: { h: { auth: 3 } } }, log)).find('h', 'r'), undefined);
  assert.equal(warnings.length, 2);
  assert.ok(!warnings.join().includes('canary'));
});

test('the file is where Docker looks for it', () => {
  assert.equal(dockerConfigFile({ DOCKER_CONFIG: '/a', HOME: '/b' }), '/a/config.json');
  assert.equal(dockerConfigFile({ HOME: '/b' }), '/b/.docker/config.json');
});
