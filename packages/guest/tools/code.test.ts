import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
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
  const engine = [runtimeExecutable(RUNTIME), ...RUNTIME.engineFlags] as const;
  await Promise.all(files.map((file) => makeCode(engine, compile, [program, file])));
  const [one, two] = await Promise.all(files.map((file) => readFile(file)));
  assert.ok(one !== undefined && two !== undefined);
  assert.ok(one.equals(two));
  // By the loader of envd's own start, in an engine as the guests have it.
  const taken = `
    import { readFileSync } from 'node:fs';
    import { loadProgram } from ${JSON.stringify(join(ENVD, 'start/program.ts'))};
    const [bundle, code] = ${JSON.stringify([program, files[0]])};
    console.log(loadProgram(bundle, readFileSync(code)).script.cachedDataRejected);`;
  const { stdout } = await run([...engine, '--input-type=module', '--eval', taken]);
  assert.equal(stdout.trim(), 'false');
});
