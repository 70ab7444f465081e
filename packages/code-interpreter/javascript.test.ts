import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TestInterpreter } from './testing/interpreter.ts';

let interpreter: TestInterpreter;
before(async () => {
  interpreter = await TestInterpreter.start({ OF_SANDBOX: 'x=y\n"q"' });
});
after(() => interpreter[Symbol.asyncDispose]());
const run = (code: string, language = 'javascript') => interpreter.run(code, { language });

test('state stays, declarations may be repeated, the last value is the result', async () => {
  await run('const a = 20; let b = await Promise.resolve(1); class C {}');
  assert.equal((await run('a * 2 + b + 1')).text, '42');
  assert.equal((await run('const a = 5; a', 'js')).text, '5');
  assert.equal((await run('process.cwd()')).text, interpreter.home);
  assert.equal((await run('({ list: [1, "ü"], c: new C() })')).text, "{ list: [ 1, 'ü' ], c: C {} }");
  for (const silent of ['undefined', 'let c = 1', '']) assert.deepEqual((await run(silent)).results, [], silent);
});

test('output, and what is shown in the middle of a cell', async () => {
  const { stdout, stderr, results } = await run(
    'console.log("zeile ü €"); console.error("bad"); display("<b>", "text/html"); display({ _toSvg: () => "<svg/>" })',
  );
  assert.deepEqual([stdout, stderr], ['zeile ü €\n', 'bad\n']);
  assert.deepEqual(
    results.map(({ html, svg, is_main_result }) => [html ?? svg, is_main_result]),
    [
      ['<b>', false],
      ['<svg/>', false],
    ],
  );
});

test('errors have name, value and a stack of the cell; what is thrown later does not end the context', async () => {
  const { error } = await run('function f() { throw new TypeError("wrong") }\nf()');
  assert.deepEqual([error?.name, error?.value], ['TypeError', 'wrong']);
  assert.match(error?.traceback ?? '', /^TypeError: wrong\n +at f \(Cell\[\d+\]:1:22\)\n +at Cell\[\d+\]:2:1$/);
  assert.equal((await run('let q = ;')).error?.name, 'SyntaxError');
  assert.equal((await run('await Promise.reject(new RangeError("r"))')).error?.name, 'RangeError');
  assert.equal((await run('throw "text"')).error?.value, 'text');
  const later = await run(
    'setTimeout(() => { throw new Error("late") }, 1); await new Promise((r) => setTimeout(r, 50)); 1',
  );
  assert.match(later.stderr, /Error: late/);
  assert.equal(later.text, '1');
});

test('modules are imported by declarations and by calls, from the folder of the context, too', async () => {
  await writeFile(join(interpreter.home, 'own.mjs'), 'export default 1; export const two = 2;');
  const code = [
    "import { readFileSync as read, existsSync } from 'fs'",
    'import * as path from "node:path"; // import x from "y"',
    "import own, {\n  two,\n} from './own.mjs'",
    "import 'node:os'",
    `const text = \`import a from "b" \${(await import("node:os")).EOL}\`;`,
    '[typeof read, typeof existsSync, path.sep, own + two, text, /import "x"/.test("")]',
  ].join('\n');
  const { text, error } = await run(code);
  assert.equal(error, undefined, error?.traceback);
  assert.equal(text, "[ 'function', 'function', '/', 3, 'import a from \"b\" \\n', false ]");
  assert.equal((await run('require("./own.mjs").two + require("os").EOL.length')).text, '3');
});

test('TypeScript has contexts of its own, enums included', async () => {
  await run('onlyHere = 1');
  const { text } = await run(
    'enum E { A = 3 }\nconst n: number = E.A; interface I { x: string }\n[n, typeof onlyHere]',
    'ts',
  );
  assert.equal(text, "[ 3, 'undefined' ]");
  assert.equal((await run('const = 1', 'typescript')).error?.name, 'SyntaxError');
});

test('variables: of the sandbox, of one call, and back again', async () => {
  const code = '[process.env.OF_SANDBOX, process.env.OF_CALL]';
  const once = await interpreter.run(code, { language: 'js', env_vars: { OF_CALL: "a'\n", OF_SANDBOX: 'other' } });
  assert.equal(once.text, `[ 'other', "a'\\n" ]`);
  assert.equal((await run(code)).text, `[ 'x=y\\n"q"', undefined ]`);
});

test('a cell is interrupted when its client goes away: busy, waiting, and in a command', async () => {
  for (const code of [
    'for (;;);',
    'await null; for (;;);',
    'await new Promise(() => {})',
    'require("child_process").execSync("sleep 600")',
  ]) {
    await interpreter.abandon(`console.log("begun"); ${code}`, { language: 'js' });
    assert.equal((await run('"still here"')).text, 'still here', code);
  }
});

test('a kernel that ends is told, and the next cell has a new one', async () => {
  assert.match((await run('process.exit(3)')).error?.value ?? '', /ended with exit code 3/);
  assert.equal((await run('typeof a')).text, 'undefined');
});
