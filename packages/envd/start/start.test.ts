import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { types } from 'node:util';
import { loadProgram } from './program.ts';

const SOURCE = `
const files = require('node:fs/promises');
const path = require('node:path');
exports.start = (name) => path.join('/', name);
exports.files = files;
`;

test('code that was made of a bundle is used for it, and refused for another one, which runs all the same', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'aenv-start-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bundle = join(folder, 'bundle.cjs');
  writeFileSync(bundle, SOURCE);
  const first = loadProgram(bundle);
  const start = (exports: Readonly<Record<string, unknown>>) => (exports.start as (name: string) => string)('a');
  assert.equal(start(first.run()), '/a');
  const code = first.script.createCachedData();

  const second = loadProgram(bundle, code);
  assert.equal(second.script.cachedDataRejected, false);
  assert.equal(start(second.run()), '/a');

  writeFileSync(bundle, `${SOURCE}// more`);
  const third = loadProgram(bundle, code);
  assert.equal(third.script.cachedDataRejected, true);
  assert.equal(start(third.run()), '/a');
});

test('what is large and not needed to listen is loaded when it is used', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'aenv-start-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bundle = join(folder, 'bundle.cjs');
  writeFileSync(bundle, SOURCE);
  const { files } = loadProgram(bundle).run() as { files: typeof import('node:fs/promises') };
  assert.ok(types.isProxy(files), 'a stand-in for the module');
  assert.equal(await files.readFile(bundle, 'utf8'), readFileSync(bundle, 'utf8'));
});
