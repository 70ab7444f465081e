import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../config/load.ts';
import { removeLayerSources, writeLayerSources } from './layer-sources.ts';

test('the block daemon learns how registries are reached and the credentials of the file, and nobody else does', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'aenv-sources-'));
  t.after(() => rm(home, { recursive: true }));
  const docker = join(home, 'config.json');
  const auths = { 'r.example': { auth: 'dTpw' } };
  await writeFile(docker, JSON.stringify({ auths, credHelpers: { x: 'y' } }));
  const env = { AENV_HOME: home, AENV_REGISTRY_DOCKER_CONFIG: docker, AENV_REGISTRY_INSECURE: 'r.example' };
  const folder = join(home, 'blockd');
  const uid = process.getuid?.() ?? 0;
  const first = await writeLayerSources(loadConfig({ env }), folder, uid);
  const written = JSON.parse(await readFile(first.config, 'utf8'));
  assert.deepEqual(written.registry.insecure, ['r.example']);
  assert.deepEqual(JSON.parse(await readFile(written.registry.dockerConfig, 'utf8')), { auths });
  for (const path of [first.config, written.registry.dockerConfig])
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  await writeFile(docker, JSON.stringify({ auths: {} }));
  assert.equal((await writeLayerSources(loadConfig({ env }), folder, uid)).fingerprint, first.fingerprint);
  await writeFile(docker, 'not JSON');
  const other = { ...env, AENV_REGISTRY_INSECURE: '' };
  assert.notEqual((await writeLayerSources(loadConfig({ env: other }), folder, uid)).fingerprint, first.fingerprint);
  await removeLayerSources(folder);
  assert.deepEqual(await readdir(folder), []);
});
