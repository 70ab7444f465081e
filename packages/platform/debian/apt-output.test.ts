import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRecords, parseSimulation } from './download.ts';
import { parseIndexTargets, withHostOptions } from './host.ts';
import { parseInstalled } from './packages.ts';
import { parseSources } from './sources.ts';

test('only repositories whose signed Release file says Debian count, components joined', () => {
  const text = [
    'Debian|Debian|bookworm|bookworm|main|http://mirror.example/debian/',
    'Debian|Debian|bookworm|bookworm|contrib|http://mirror.example/debian/',
    'Debian|Debian-Security|bookworm-security|bookworm-security|main|http://mirror.example/security/',
    'Other|Other|bookworm|bookworm|main|http://other.example/',
    '$(ORIGIN)|$(LABEL)|$(CODENAME)|bookworm|main|http://unknown.example/',
    '',
  ].join('\n');
  const found = parseIndexTargets(text);
  assert.deepEqual(
    found.map(({ uri, suite, components, label }) => [uri, suite, components.join(' '), label]),
    [
      ['http://mirror.example/debian/', 'bookworm', 'main contrib', 'Debian'],
      ['http://mirror.example/security/', 'bookworm-security', 'main', 'Debian-Security'],
    ],
  );
});

test('another suite of a mirror is checked with the keyring of the host entry for that mirror', () => {
  const entries = parseSources(
    'sources.list',
    [
      'deb [signed-by=/other.gpg] http://other.example/debian bookworm main',
      'deb [signed-by=/debian.gpg] http://mirror.example/debian bookworm main',
    ].join('\n'),
  );
  const repository = {
    uri: 'http://mirror.example/debian/',
    components: ['main'],
    label: 'Debian',
    codename: 'bookworm',
  };
  const entry = withHostOptions({ ...repository, suite: 'bookworm-backports' }, entries);
  assert.deepEqual(entry.suites, ['bookworm-backports']);
  assert.equal(entry.fields.get('Signed-By'), '/debian.gpg');
});

test('a simulation lists new, upgraded and foreign packages', () => {
  const text = [
    'Reading package lists...',
    'Inst libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])',
    'Inst seabios [1.16.2-1] (1.16.3-2~bpo12+1 Debian Backports:bookworm-backports [all])',
    'Inst libc6:i386 (2.36-9 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [i386]) []',
    'Conf libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])',
    'Remv other [1.0]',
  ].join('\n');
  assert.deepEqual(parseSimulation(text), [
    { name: 'libfdt1', version: '1.6.1-4+b1', architecture: 'amd64' },
    { name: 'seabios', version: '1.16.3-2~bpo12+1', architecture: 'all' },
    { name: 'libc6', version: '2.36-9', architecture: 'i386' },
  ]);
});

test('records give name, version, architecture and what they depend on', () => {
  const text =
    'Package: linux-image-cloud\nVersion: 6.1.1-1\nArchitecture: amd64\nDepends: linux-image-6.1 (= 6.1.1-1)\n\n';
  assert.deepEqual(parseRecords(`${text}Package: broken\n\n`), [
    { name: 'linux-image-cloud', version: '6.1.1-1', architecture: 'amd64', depends: 'linux-image-6.1 (= 6.1.1-1)' },
  ]);
});

test('only fully installed packages have a version', () => {
  const versions = parseInstalled('ii |gcc|12.2\nrc |gone|1.0\nun |never|\niU |half|2.0\n');
  assert.deepEqual([...versions], [['gcc', '12.2']]);
});
