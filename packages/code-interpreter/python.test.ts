import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TestInterpreter } from './testing/interpreter.ts';

let interpreter: TestInterpreter;
before(async () => {
  interpreter = await TestInterpreter.start({ OF_SANDBOX: 'x=y\n"q" $HOME' });
});
after(() => interpreter[Symbol.asyncDispose]());
const run = (code: string, env_vars?: Record<string, string>) =>
  interpreter.run(code, env_vars === undefined ? {} : { env_vars });

test('the value of the last expression is the main result, and names stay', async () => {
  assert.equal((await run('x = 41; x + 1')).text, '42');
  assert.equal((await run('x += 1; x')).text, '42');
  assert.equal((await run("'a text'")).text, 'a text');
  assert.equal((await run('_')).text, 'a text');
  for (const silent of ['None', 'x;', 'x = 2', '# nothing', '']) {
    assert.deepEqual((await run(silent)).results, [], silent);
  }
  const first = (await run('1')).events[0]?.execution_count ?? 0;
  assert.equal((await run('1')).events[0]?.execution_count, first + 1);
});

test('output is streamed by lines, whole characters, and in its order with that of commands', async () => {
  const { events } = await run('print("hello")');
  assert.deepEqual(
    events.map(({ type, text }) => [type, text]),
    [
      ['number_of_executions', undefined],
      ['stdout', 'hello\n'],
      ['end_of_execution', undefined],
    ],
  );
  assert.match(String(events[1]?.timestamp), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/);
  const mixed = await run('import os, sys\nprint("ü €")\nos.system("echo b")\nprint("c", file=sys.stderr)\nprint("d")');
  assert.equal(mixed.stdout, 'ü €\nb\nd\n');
  assert.equal(mixed.stderr, 'c\n');
  const cut =
    'import os, time\nfor b in "€".encode():\n    os.write(1, bytes([b])); time.sleep(0.02)\nos.write(1, b"\\xff")';
  assert.equal((await run(cut)).stdout, '€\ufffd');
});

test('results come in all their forms, and one that fails is told', async () => {
  const code = [
    'class R:',
    '    def __repr__(self): return "text"',
    ...['html', 'markdown', 'svg', 'latex', 'javascript'].map((f) => `    def _repr_${f}_(self): return "<${f}>"`),
    ...['png', 'jpeg', 'pdf'].map((f) => `    def _repr_${f}_(self): return b"${f}"`),
    '    def _repr_json_(self): return {"a": float("nan")}, {"expanded": True}',
    '    def _repr_mimebundle_(self, include, exclude): return {"application/x-own": [1]}',
    'R()',
  ].join('\n');
  const { type, is_main_result, ...forms } = (await run(code)).results[0] ?? {};
  assert.deepEqual([type, is_main_result], ['result', true]);
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  assert.deepEqual(forms, {
    ...{ text: 'text', html: '<html>', markdown: '<markdown>', svg: '<svg>', latex: '<latex>' },
    ...{ javascript: '<javascript>', png: base64('png'), jpeg: base64('jpeg'), pdf: base64('pdf'), json: { a: null } },
    ...{ 'application/x-own': [1], extra: { 'application/x-own': [1] } },
  });
  const bad = await run('class B:\n    def _repr_html_(self): raise ValueError("no")\nB()');
  assert.match(bad.stderr, /ValueError: no/);
  assert.match(bad.text ?? '', /^<__main__\.B object/);
});

test('dicts and lists are JSON as well; what has no place in JSON is left out', async () => {
  assert.deepEqual((await run('{"a": [1, 2.5, None], 3: (True,)}')).results[0]?.json, {
    a: [1, 2.5, null],
    '3': [true],
  });
  assert.equal('json' in ((await run('[object]')).results[0] ?? {}), false);
  assert.equal('json' in ((await run('l = []; l.append(l); l')).results[0] ?? {}), false);
});

test('display shows in the middle of a cell, also by the names of IPython', async () => {
  const code = [
    'from IPython.display import display, HTML, Markdown',
    'display(1)',
    'display(HTML("<b>"), Markdown("# m"))',
    'display({"text/latex": "$x$"}, raw=True)',
    'get_ipython().execution_count > 0',
  ].join('\n');
  const { results } = await run(code);
  assert.deepEqual(
    results.map(
      ({ text, html, markdown, latex, is_main_result }) => html ?? markdown ?? latex ?? [text, is_main_result],
    ),
    [['1', false], '<b>', '# m', '$x$', ['True', true]],
  );
});

test('errors have name, value and a traceback that begins in the cell', async () => {
  const { error, results } = await run('def f(a):\n    return 1 / a\n\nf(0)');
  assert.deepEqual([error?.name, error?.value, results.length], ['ZeroDivisionError', 'division by zero', 0]);
  assert.match(error?.traceback ?? '', /Cell In\[\d+\], line 4\n[\s\S]*----> 4 f\(0\)\n\nCell In\[\d+\], line 2, in f/);
  assert.doesNotMatch(error?.traceback ?? '', /_aenv_interpreter/);
  const syntax = (await run('x ==')).error;
  assert.equal(syntax?.name, 'SyntaxError');
  assert.match(syntax?.traceback ?? '', /x ==\n +\^/);
  const chained = (await run('try:\n    1/0\nexcept Exception as e:\n    raise ValueError("two") from e')).error;
  assert.match(chained?.traceback ?? '', /ZeroDivisionError[\s\S]*direct cause[\s\S]*ValueError: two$/);
  assert.equal((await run('def r(): r()\nr()')).error?.name, 'RecursionError');
  assert.equal((await run('import sys; sys.exit(3)')).error?.name, 'SystemExit');
  assert.equal((await run('input()')).error?.name, 'EOFError');
  assert.equal((await run('x')).error, undefined);
});

test('variables: of the sandbox, of one call, and back again', async () => {
  const show = 'import os; print(repr(os.environ.get("OF_SANDBOX")), repr(os.environ.get("OF_CALL")))';
  assert.equal((await run(show, { OF_CALL: "a'b\nc", OF_SANDBOX: 'other' })).stdout, `'other' "a'b\\nc"\n`);
  assert.equal((await run(show)).stdout, `'x=y\\n"q" $HOME' None\n`);
});

test('indented cells, lines of the shell and magics run as in a notebook', async () => {
  assert.equal((await run('\n    y = 3\n    if y:\n        y += 1\n    y')).text, '4');
  const shell = await run(
    'import os\n!pwd\nfiles = !echo a; echo b\nname = "n"\n!echo $name {1 + 1} $HOME_NOT_PYTHON\nfiles',
  );
  assert.equal(shell.stdout, `${interpreter.home}\nn 2\n`);
  assert.equal(shell.text, "['a', 'b']");
  assert.equal((await run('%matplotlib inline\nz = 5\nz')).text, '5');
  assert.equal((await run('%%bash\necho $((1 + 2))')).stdout, '3\n');
  await run('%%writefile made.txt\nline\n');
  assert.equal(await readFile(join(interpreter.home, 'made.txt'), 'utf8'), 'line\n');
  assert.equal((await run('s = """\n!not a command\n"""\ns')).text, '\\n!not a command\\n');
  const unknown = (await run('%nosuch')).error;
  assert.deepEqual([unknown?.name, unknown?.value], ['UsageError', 'Line magic function `%nosuch` not found.']);
});

test('await at the top, and event loops of the cell', async () => {
  assert.equal((await run('import asyncio\nawait asyncio.sleep(0)\n7')).text, '7');
  assert.equal((await run('async def f(): return 8\nasyncio.run(f())')).text, '8');
  assert.equal((await run('await f()')).text, '8');
});

test('a kernel that ends is told, and the next cell has a new one', async () => {
  assert.match((await run('import os; os._exit(4)')).error?.value ?? '', /ended with exit code 4/);
  assert.match((await run('import os, signal; os.kill(os.getpid(), 9)')).error?.value ?? '', /ended by signal 9/);
  const fresh = await run('"x" in globals()');
  assert.deepEqual([fresh.text, fresh.events[0]?.execution_count], ['False', 1]);
});

test('processes that a cell forks do not speak for it', async () => {
  const code = 'import multiprocessing as mp\nwith mp.get_context("fork").Pool(2) as p: r = p.map(len, ["a", "bb"])\nr';
  assert.equal((await run(code)).text, '[1, 2]');
  const forked = await run('import os\nif os.fork() == 0:\n    display("child"); os._exit(0)\nos.wait()\n"parent"');
  assert.deepEqual(
    forked.results.map(({ text }) => text),
    ['parent'],
  );
});
