import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { HOST_ONLY_PATHS } from '@aenv/contracts/envd/host-api.ts';
import fc from 'fast-check';
import { isOpenEnvdPath } from './envd-paths.ts';

test("envd's own paths are open", () => {
  for (const path of [
    '/',
    '/health',
    '/metrics',
    '/envs',
    '/files?path=/init&username=user',
    '/files?path=%2Finit%2F..',
    '/files/compose',
    '/process.Process/Start',
    '/filesystem.Filesystem/ListDir',
    '/initial',
    '/x/init',
  ]) {
    assert.ok(isOpenEnvdPath(path), path);
  }
});

test('host-only paths are closed in every usual and unusual spelling', () => {
  for (const path of HOST_ONLY_PATHS) {
    const name = path.slice(1);
    for (const spelling of [
      path,
      `${path}/`,
      `${path}?a=b`,
      `${path}/x`,
      path.toUpperCase(),
      `/${path}`,
      `//x${path}`,
      `/.${path}`,
      `/x/..${path}`,
      `/%2e${path}`,
      `/x/%2E%2e${path}`,
      `/${name.replace('i', '%69').replace('f', '%66').replace('u', '%75').replace('c', '%63')}`,
      `\\${name}`,
      `/\\${name}`,
      `${path}#`,
      `/health#/..${path}`,
      `${path};x=y`,
      `${path}%00`,
      `${path}%20`,
      `${path}\t`,
      name,
      `*${path}`,
      `http://x${path}`,
    ]) {
      assert.ok(!isOpenEnvdPath(spelling), spelling);
    }
  }
});

/** The ways in which a server could understand a path, from strict to careless. */
const readings: ((path: string) => string)[] = [
  (path) => path.split('?')[0] ?? '',
  (path) => new URL(path, 'http://guest').pathname,
  (path) => new URL(`http://guest${path}`).pathname,
  (path) => decodeURIComponent(new URL(path, 'http://guest').pathname),
  (path) => posix.normalize(decodeURIComponent((path.split(/[?#;]/)[0] ?? '').replaceAll('\\', '/'))),
  (path) => posix.normalize(decodeURIComponent(decodeURIComponent(path.split('?')[0] ?? ''))),
];

test('no spelling that is open leads any reading of it to a host-only path', () => {
  const piece = fc.constantFrom(
    ...HOST_ONLY_PATHS,
    ...HOST_ONLY_PATHS.map((path) => path.slice(1)),
    '/',
    '//',
    '\\',
    '.',
    '..',
    '%2e',
    '%2f',
    '%5c',
    '%69',
    '%2569',
    'init',
    'INIT',
    'nit',
    '?',
    '#',
    ';',
    '@',
    ':',
    'x',
    'http:',
    '\t',
    '%00',
  );
  const path = fc.oneof(
    fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
    fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join('')}`),
    fc.string().map((text) => `/${text}`),
  );
  let open = 0;
  fc.assert(
    fc.property(path, (text) => {
      if (!isOpenEnvdPath(text)) return;
      open++;
      for (const read of readings) {
        const understood = read(text).toLowerCase().replace(/\/+$/, '');
        assert.ok(!HOST_ONLY_PATHS.includes(understood), `${JSON.stringify(text)} reads as ${understood}`);
      }
    }),
    { numRuns: 5_000 },
  );
  assert.ok(open > 100, 'the property was tried on open paths too');
});
