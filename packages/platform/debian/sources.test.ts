import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSources, parseSources, parseStanzas } from './sources.ts';

const DEB822 = `# the distribution
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main

types: deb
uris: http://keyed.example/debian
suites: bookworm
components: main
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBGPL0BUBEAC
 -----END PGP PUBLIC KEY BLOCK-----
`;

test('deb822: enabled deb entries with their keyrings, whatever the case of the field names', () => {
  const entries = parseSources('debian.sources', DEB822);
  assert.deepEqual(
    entries.map(({ uris, suites, components }) => [uris, suites, components]),
    [
      [['http://mirror.example/debian'], ['bookworm', 'bookworm-updates'], ['main', 'contrib']],
      [['http://keyed.example/debian'], ['bookworm'], ['main']],
    ],
  );
  assert.equal(entries[0]?.fields.get('Signed-By'), '/usr/share/keyrings/debian-archive-keyring.gpg');
  assert.match(entries[1]?.fields.get('Signed-By') ?? '', /^\n -----BEGIN [\s\S]* -----END PGP PUBLIC KEY BLOCK-----$/);
});

test('one line: options become fields, comments and source entries are left out', () => {
  const entries = parseSources(
    'sources.list',
    [
      '# deb http://comment.example/debian bookworm main',
      'deb [arch=amd64,arm64 signed-by=/etc/apt/k.gpg lang=de] http://mirror.example/debian bookworm main contrib # why',
      'deb-src http://mirror.example/debian bookworm main',
      '  deb http://plain.example/debian/ bookworm main',
      'deb http://flat.example/ ./',
      'deb broken',
    ].join('\n'),
  );
  assert.deepEqual(
    entries.map(({ uris, suites, components }) => [uris[0], suites[0], components.join(' ')]),
    [
      ['http://mirror.example/debian', 'bookworm', 'main contrib'],
      ['http://plain.example/debian/', 'bookworm', 'main'],
      ['http://flat.example/', './', ''],
    ],
  );
  assert.deepEqual(
    [...(entries[0]?.fields ?? [])],
    [
      ['Architectures', 'amd64 arm64'],
      ['Signed-By', '/etc/apt/k.gpg'],
    ],
  );
});

test('files with other endings are ignored, as apt does', () => {
  assert.deepEqual(parseSources('old.list.save', 'deb http://mirror.example/debian bookworm main'), []);
});

test('what is written can be read again, an embedded key included', () => {
  const entries = parseSources('debian.sources', DEB822);
  assert.deepEqual(parseSources('again.sources', formatSources(entries)), entries);
});

test('stanzas are separated by blank lines and keep continuation lines', () => {
  const [first, second] = parseStanzas('Package: a\nDepends: b,\n c\n\n\nPackage: d\n');
  assert.equal(first?.get('depends'), 'b,\n c');
  assert.equal(second?.get('package'), 'd');
});
