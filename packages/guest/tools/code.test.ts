import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Script } from 'node:vm';
import { bundle } from './bundle.ts';
import { makeCode } from './code.ts';
import { RUNTIME, runtimeExecutable } from './runtime.ts';

const ENVD = join(import.meta.dirname, '../../envd');

test('the code of envd is the same each time it is made, and the engine takes it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'guest-code-'));
  t.after(() => rm(folder, { recursive: true }));
  const program = join(folder, 'envd.cjs');
  await bundle(join(ENVD, 'main.ts'), RUNTIME.bundleTarget, program);
  const files = [join(folder, 'one'), join(folder, 'two')];
  const compile = join(ENVD, 'start/compile.ts');
  await Promise.all(files.map((file) => makeCode(runtimeExecutable(RUNTIME), compile, [program, file])));
  const [one, two] = await Promise.all(files.map((file) => readFile(file)));
  assert.ok(one !== undefined && two !== undefined);
  assert.ok(one.equals(two));
  // As envd's own start wraps it.
  const source = `(function (exports, require, module) {${await readFile(program, 'latin1')}\n})`;
  assert.equal(new Script(source, { cachedData: one }).cachedDataRejected, false);
});
