import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { uuidOf } from './build.ts';
import { loaderWithoutPreload, parseLibraries, sharedLibraries } from './libraries.ts';
import { RUNTIME, runtimeExecutable } from './runtime.ts';

test('libraries are read from what the loader lists; a missing one is an error', () => {
  const libraries = parseLibraries(
    [
      '\tlinux-vdso.so.1 (0x00007ffc6c9f2000)',
      '\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f1)',
      '\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f2)',
      '\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)',
    ].join('\n'),
  );
  assert.deepEqual(
    [...libraries],
    [
      ['libdl.so.2', '/lib/x86_64-linux-gnu/libdl.so.2'],
      ['libstdc++.so.6', '/lib/x86_64-linux-gnu/libstdc++.so.6'],
    ],
  );
  assert.throws(() => parseLibraries('\tlibgone.so.1 => not found\n'), /libgone.so.1 is missing/);
});

test('the runtime of this machine and its libraries are found', async () => {
  const libraries = await sharedLibraries(RUNTIME.loader, runtimeExecutable(RUNTIME));
  assert.ok(libraries.has('libc.so.6'));
  assert.ok([...libraries.values()].every((path) => path.startsWith('/')));
});

test('the loader on the drive asks for no preload list, and differs in nothing else', async () => {
  const original = await readFile(RUNTIME.loader);
  const changed = await loaderWithoutPreload(RUNTIME.loader);
  assert.equal(changed.length, original.length);
  assert.equal(changed.includes('/etc/ld.so.preload'), false);
  const first = changed.findIndex((byte, index) => byte !== original[index]);
  assert.equal(original.toString('latin1', first - 1, first + 17), '/etc/ld.so.preload');
  assert.deepEqual(changed.subarray(first + 17), original.subarray(first + 17));
});

test('a file that is no such loader is refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'guest-loader-'));
  try {
    await writeFile(join(folder, 'other'), 'no loader');
    await assert.rejects(loaderWithoutPreload(join(folder, 'other')), AenvError);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the UUID of the drive follows from the digest', () => {
  const digest = '00112233445566778899aabbccddeeff'.repeat(2);
  assert.equal(uuidOf(digest), '00112233-4455-8677-8899-aabbccddeeff');
  assert.notEqual(uuidOf(digest.replace('0', '1')), uuidOf(digest));
});
