import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import type { InterpreterBed } from './bed.ts';

export const python: Group<InterpreterBed> = {
  title: 'Python',
  scenarios: [
    {
      name: 'runCode: a result, and what was defined stays',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const first = await sandbox.runCode('x = 41\nx + 1');
        assert.deepEqual([first.text, first.error, first.results.length], ['42', undefined, 1]);
        assert.equal(first.results[0]?.isMainResult, true);
        const second = await sandbox.runCode('x');
        assert.equal(second.text, '41');
        assert.equal(second.executionCount, (first.executionCount ?? 0) + 1);
      },
    },
    {
      name: 'stdout and stderr, streamed and kept',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const out: string[] = [];
        const err: string[] = [];
        const code = 'import sys\nprint("grüße €")\nprint("bad", file=sys.stderr)';
        const { logs, results } = await sandbox.runCode(code, {
          onStdout: ({ line, timestamp }) => {
            assert.ok(timestamp > 0);
            out.push(line);
          },
          onStderr: ({ line }) => void err.push(line),
        });
        assert.deepEqual([out.join(''), err.join('')], ['grüße €\n', 'bad\n']);
        assert.deepEqual([logs.stdout.join(''), logs.stderr.join('')], ['grüße €\n', 'bad\n']);
        assert.deepEqual(results, []);
      },
    },
    {
      name: 'results as text, HTML, Markdown, SVG, JSON, LaTeX and JavaScript',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const code = [
          'class R:',
          '    def __repr__(self): return "text"',
          '    def _repr_html_(self): return "<b>html</b>"',
          '    def _repr_markdown_(self): return "**md**"',
          '    def _repr_svg_(self): return "<svg/>"',
          '    def _repr_json_(self): return {"a": 1}',
          '    def _repr_latex_(self): return "$x$"',
          '    def _repr_javascript_(self): return "1+1"',
          'R()',
        ].join('\n');
        const [result] = (await sandbox.runCode(code)).results;
        const { text, html, markdown, svg, json, latex, javascript } = result ?? {};
        assert.deepEqual([text, html, markdown], ['text', '<b>html</b>', '**md**']);
        assert.deepEqual([svg, json, latex, javascript], ['<svg/>', { a: 1 }, '$x$', '1+1']);
        const expected = ['html', 'javascript', 'json', 'latex', 'markdown', 'svg'];
        assert.deepEqual(
          result
            ?.formats()
            .filter((format) => format !== 'text')
            .sort(),
          expected,
        );
      },
    },
    {
      name: 'display: several results in order, only the last expression is the main one',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const { results } = await sandbox.runCode('display(1)\ndisplay("two")\n3');
        assert.deepEqual(
          results.map(({ text, isMainResult }) => [text, isMainResult]),
          [
            ['1', false],
            ['two', false],
            ['3', true],
          ],
        );
      },
    },
    {
      name: 'an error: name, value, traceback; the context goes on',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const seen: string[] = [];
        const { error, text } = await sandbox.runCode('y = 5\nraise ValueError("wrong ü")', {
          onError: ({ name }) => void seen.push(name),
        });
        assert.deepEqual([error?.name, error?.value, text], ['ValueError', 'wrong ü', undefined]);
        assert.match(error?.traceback ?? '', /ValueError[\s\S]*wrong ü/);
        assert.deepEqual(seen, ['ValueError']);
        assert.equal((await sandbox.runCode('1 +')).error?.name, 'SyntaxError');
        assert.equal((await sandbox.runCode('y')).text, '5');
      },
    },
    {
      name: 'variables: of the sandbox, and of one call',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const code = 'import os; print(os.environ.get("OF_SANDBOX"), os.environ.get("OF_CALL"))';
        const once = await sandbox.runCode(code, { envs: { OF_CALL: 'once' } });
        assert.equal(once.logs.stdout.join(''), 'x=y "q" $HOME once\n');
        assert.equal((await sandbox.runCode(code)).logs.stdout.join(''), 'x=y "q" $HOME None\n');
      },
    },
    {
      name: 'a deadline: TimeoutError, and the cell is interrupted',
      async run(bed) {
        const sandbox = await bed.sandbox();
        await assert.rejects(sandbox.runCode('import time\ntime.sleep(600)', { timeoutMs: 1_500 }), /timed out/i);
        assert.equal((await sandbox.runCode('2 + 2', { timeoutMs: 30_000 })).text, '4');
      },
    },
  ],
};

export const contexts: Group<InterpreterBed> = {
  title: 'Contexts and languages',
  scenarios: [
    {
      name: 'a context has its own state and folder',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const context = await sandbox.createCodeContext({ cwd: '/tmp' });
        assert.deepEqual([context.language, context.cwd], ['python', '/tmp']);
        await sandbox.runCode('own = 1', { context });
        const code = 'import os; (os.getcwd(), "own" in globals())';
        assert.equal((await sandbox.runCode(code, { context })).text, "('/tmp', True)");
        assert.equal((await sandbox.runCode(code)).text, "('/home/user', False)");
      },
    },
    {
      name: 'list, restart and remove contexts',
      since: '2.8.0',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const context = await sandbox.createCodeContext();
        const listed = async () => (await sandbox.listCodeContexts()).some(({ id }) => id === context.id);
        assert.equal(await listed(), true);
        await sandbox.runCode('gone = 1', { context });
        await sandbox.restartCodeContext(context);
        assert.equal((await sandbox.runCode('"gone" in globals()', { context })).text, 'False');
        await sandbox.removeCodeContext(context.id);
        assert.equal(await listed(), false);
        await assert.rejects(sandbox.runCode('1', { context }), bed.sdk.NotFoundError);
      },
    },
    {
      name: 'JavaScript: state, output, results, errors',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const run = (code: string) => sandbox.runCode(code, { language: 'javascript' });
        await run('const a = 20; let b = await Promise.resolve(1)');
        const { text, logs } = await run('console.log("zeile ü"); a * 2 + b + 1');
        assert.deepEqual([text, logs.stdout.join('')], ['42', 'zeile ü\n']);
        const { error } = await run('throw new TypeError("wrong")');
        assert.deepEqual([error?.name, error?.value], ['TypeError', 'wrong']);
      },
    },
    {
      name: 'bash: state, output, exit codes',
      async run(bed) {
        const sandbox = await bed.sandbox();
        const run = (code: string) => sandbox.runCode(code, { language: 'bash' });
        await run('cd /tmp; v=kept');
        assert.equal((await run('echo "$v $PWD"')).logs.stdout.join(''), 'kept /tmp\n');
        assert.equal((await run('echo bad >&2')).logs.stderr.join(''), 'bad\n');
      },
    },
    {
      name: 'a language that is not there, a context and a language at once: told',
      async run(bed) {
        const sandbox = await bed.sandbox();
        await assert.rejects(sandbox.runCode('1', { language: 'cobol' }), /cobol/);
        const context = await sandbox.createCodeContext();
        await assert.rejects(
          sandbox.runCode('1', { context, language: 'python' } as object),
          bed.sdk.InvalidArgumentError,
        );
      },
    },
  ],
};
