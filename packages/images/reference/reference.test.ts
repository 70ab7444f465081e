import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatReference, parseReference } from './reference.ts';
import { parseSource } from './source.ts';

const DIGEST = `sha256:${'0a'.repeat(32)}`;
const full = (text: string, search = ['docker.io']) => parseReference(text, search).map(formatReference);

test('what is left out of a name is filled in as Docker does', () => {
  const cases: [string, string][] = [
    ['debian', 'docker.io/library/debian:latest'],
    ['debian:12-slim', 'docker.io/library/debian:12-slim'],
    ['docker.io/debian', 'docker.io/library/debian:latest'],
    ['index.docker.io/debian', 'docker.io/library/debian:latest'],
    ['me/tool', 'docker.io/me/tool:latest'],
    ['ghcr.io/a/b/c__d:1.0', 'ghcr.io/a/b/c__d:1.0'],
    ['localhost/x', 'localhost/x:latest'],
    ['localhost:5000/x:y', 'localhost:5000/x:y'],
    ['[::1]:5000/x', '[::1]:5000/x:latest'],
    ['Registry/x', 'registry/x:latest'],
    [`debian@${DIGEST}`, `docker.io/library/debian@${DIGEST}`],
    [`debian:12@${DIGEST}`, `docker.io/library/debian:12@${DIGEST}`],
  ];
  for (const [text, expected] of cases) assert.deepEqual(full(text), [expected], text);
});

test('a name without a host is looked for in every search registry, in their order', () => {
  assert.deepEqual(full('tool:1', ['quay.io', 'docker.io', 'localhost:5000']), [
    'quay.io/tool:1',
    'docker.io/library/tool:1',
    'localhost:5000/tool:1',
  ]);
  assert.deepEqual(full('ghcr.io/tool', ['quay.io', 'docker.io']), ['ghcr.io/tool:latest']);
  assert.throws(() => full('tool', []), { code: 'image_reference_invalid', message: /registry\.search/ });
});

test('what is no name is refused with the part that is wrong', () => {
  const bad = ['', ':', '/', 'a//b', 'a/', '/a', 'UPPER', 'a/Upper', 'a:', 'a:b:c', 'a:-x', 'a b', '../x', 'a/../b'];
  bad.push('a@', 'a@sha256:00', `a@${DIGEST}x`, `a@sha256:../../x`, 'host:99999/x', '-a.b/x', 'a\n', 'a.b/x?y');
  bad.push(`a/${'b'.repeat(300)}`, `a:${'b'.repeat(129)}`, 'x'.repeat(3000), 'a__-b', 'http://a.b/c', 'a.b/c#d');
  for (const text of bad) assert.throws(() => full(text), { code: 'image_reference_invalid' }, text);
  assert.throws(() => full('a/Upper'), /lower case/);
});

test('files of the host are named with an absolute path, by those who may', () => {
  const local = { search: [], allowLocal: true };
  assert.deepEqual(parseSource('oci:/a/../b', local), { kind: 'oci-layout', path: '/b' });
  assert.deepEqual(parseSource('oci-archive:/a.tar:v1', local), { kind: 'oci-archive', path: '/a.tar', ref: 'v1' });
  assert.deepEqual(parseSource('docker-archive:/a.tar:host:5/x/y:z', local), {
    kind: 'docker-archive',
    path: '/a.tar',
    ref: 'host:5/x/y:z',
  });
  for (const text of ['oci:a/b', 'oci:./a', 'oci:/a:', 'docker-archive:/a\0b']) {
    assert.throws(() => parseSource(text, local), { code: 'image_reference_invalid' }, text);
  }
  assert.throws(() => parseSource('oci:/a', { search: [] }), { code: 'image_reference_invalid', message: /files/ });
});

test('a name with the word of a file kind is still a name when no path follows', () => {
  const source = parseSource('oci:1.2', { search: ['docker.io'] });
  assert.deepEqual(source, {
    kind: 'registry',
    candidates: [{ host: 'docker.io', repository: 'library/oci', tag: '1.2' }],
  });
  assert.equal(parseSource('docker://a.b/c', { search: [] }).kind, 'registry');
});
