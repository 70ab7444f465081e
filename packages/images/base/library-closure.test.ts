import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStatus } from './dpkg-status.ts';
import { firstAlternatives, withLibraries } from './library-closure.ts';

const DEPENDS: Readonly<Record<string, string>> = {
  'python3-plot': 'python3-compiler, libdraw1 (>= 1.2), libc6 (>= 2.36), libjs-page, libblas3 | libblas.so.3',
  libdraw1: 'libc6, libfont6t64, libdraw-data',
  libfont6t64: 'libc6, libdraw1',
  libblas3: '',
  'libdraw-data': '',
};

test('libraries come along as far as they are missing; what else a package depends on does not', async () => {
  const asked: string[][] = [];
  const found = await withLibraries(['python3-plot'], new Set(['libc6']), async (names) => {
    asked.push([...names]);
    return names.map((name) => ({ name, version: '1', architecture: 'amd64', depends: DEPENDS[name] ?? '' }));
  });
  assert.deepEqual(found, ['python3-plot', 'libdraw1', 'libblas3', 'libfont6t64', 'libdraw-data']);
  assert.deepEqual(asked, [['python3-plot'], ['libdraw1', 'libblas3'], ['libfont6t64', 'libdraw-data']]);
});

test('of alternatives the first counts, versions and qualifiers do not', () => {
  assert.deepEqual(firstAlternatives('aa (>= 1), bb:any | cc,\n d1.0+x'), ['aa', 'bb', 'd1.0+x']);
  assert.deepEqual(firstAlternatives(''), []);
});

test('only packages that are fully installed count as there', () => {
  const stanzas = [
    'Package: one\nStatus: install ok installed\nVersion: 1',
    'Package: gone\nStatus: deinstall ok config-files',
    'Status: hold ok installed\nPackage: two',
    'Package: half\nStatus: install ok unpacked',
  ];
  assert.deepEqual([...parseStatus(`${stanzas.join('\n\n')}\n`)], ['one', 'two']);
});
