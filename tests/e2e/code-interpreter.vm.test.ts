import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as current from '@e2b/code-interpreter';
import * as old from 'code-interpreter-2-0';
import { type CompatHost, Hosts } from '../compat/support/host.ts';
import { aenv } from '../harness/cli.ts';
import { until } from '../harness/until.ts';

/** Byte for byte, wherever a process of the sandbox looks. */
const ENVS = { A: 'x=y', B: 'l1\nl2', C: '$HOME "q" \'s\' ü' };
/** Under emulation, on a busy machine, imports take their time. */
const PATIENCE = { requestTimeoutMs: 180_000, timeoutMs: 180_000 };

let hosts: Hosts;
let host: CompatHost;
let sandbox: current.Sandbox;
/** the same sandbox through the oldest version, which finds it by its domain only */
let oldSandbox: old.Sandbox;

before(async () => {
  hosts = await Hosts.open();
  host = await hosts.take();
  const built = await aenv(host.daemon, ['template', 'build', 'code-interpreter'], { timeoutMs: 600_000 });
  assert.equal(built.code, 0, built.stderr);
  assert.match(built.stdout.toString(), /^[a-z0-9]{20}\n$/);
  const connection = { domain: host.domain, apiKey: host.daemon.apiKey, requestTimeoutMs: 180_000 };
  // The template is the one that the package asks for by itself.
  sandbox = await current.Sandbox.create({ ...connection, timeoutMs: 1_200_000, envs: ENVS });
  oldSandbox = await old.Sandbox.connect(sandbox.sandboxId, connection);
});
after(async () => {
  await sandbox?.kill();
  await hosts?.[Symbol.asyncDispose]();
});

const run = (code: string, options: object = {}) => sandbox.runCode(code, { ...PATIENCE, ...options });

test('a sandbox runs when its port answers', async () => {
  const answer = await host.daemon.port(sandbox.sandboxId, 49999, '/health');
  assert.deepEqual([answer.status, await answer.text()], [200, '"OK"']);
});

test('both published versions use one sandbox, and find the same state in it', async () => {
  await run('x = 41');
  const execution = await oldSandbox.runCode('print("ü €"); x += 1; x', PATIENCE);
  assert.deepEqual([execution.text, execution.logs.stdout], ['42', ['ü €\n']]);
  const { text, executionCount } = await run('x');
  assert.deepEqual([text, executionCount], ['42', (execution.executionCount ?? 0) + 1]);
  const { error } = await oldSandbox.runCode('y', PATIENCE);
  assert.deepEqual([error?.name, error?.value], ['NameError', "name 'y' is not defined"]);
  assert.match(error?.traceback ?? '', /----> 1 y/);
  const context = await oldSandbox.createCodeContext({ cwd: '/tmp' });
  assert.equal((await run('import os; os.getcwd(), "x" in globals()', { context })).text, "('/tmp', False)");
});

test('variables are byte-exact in commands and in kernels of all languages', async () => {
  const printed = Object.values(ENVS).join('|');
  assert.equal((await sandbox.commands.run('printf "%s|%s|%s" "$A" "$B" "$C"')).stdout, printed);
  const code = {
    python: 'import os; print(*(os.environ[n] for n in "ABC"), sep="|", end="")',
    javascript: 'process.stdout.write(["A", "B", "C"].map((n) => process.env[n]).join("|")); 0',
    bash: 'printf "%s|%s|%s" "$A" "$B" "$C"',
  };
  for (const [language, text] of Object.entries(code)) {
    assert.equal((await run(text, { language })).logs.stdout.join(''), printed, language);
    const once = await run(text, { language, envs: { B: "o'1\n2" } });
    assert.equal(once.logs.stdout.join(''), printed.replace('l1\nl2', "o'1\n2"), language);
    assert.equal((await run(text, { language })).logs.stdout.join(''), printed, language);
  }
});

test('the start command has the variables of the template, in the folder and as the user that the template says', async () => {
  const { stdout } = await sandbox.commands.run(
    'p=$(pgrep -of aenv-code-interpreter/main.py); cat /proc/$p/environ; readlink /proc/$p/cwd; ps -o user= -p $p',
    { user: 'root' },
  );
  const seen = stdout.split('\0');
  for (const line of ['LANG=C.UTF-8', 'HOME=/root', 'E2B_SANDBOX=true']) assert.ok(seen.includes(line), line);
  assert.equal(seen.at(-1), '/home/user\nroot\n');
});

test('results in all forms: a data frame with its data, a chart with its picture and its numbers', async () => {
  const frame = await run('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": [pd.Timestamp(0), None]})');
  const [table] = frame.results;
  assert.deepEqual(table?.data, { a: [1, 2], b: ['1970-01-01T00:00:00', null] });
  assert.match(table?.html ?? '', /<table/);
  assert.match(table?.text ?? '', /^ +a +b\n0 +1 1970-01-01/);
  const code = [
    'import matplotlib.pyplot as plt',
    'plt.bar(["A", "B"], [100, 200], label="Sold")',
    'plt.title("Books"); plt.xlabel("Author"); plt.ylabel("Copies (k)")',
    'plt.show()',
    '{"a": [1, None]}',
  ].join('\n');
  const { results, error } = await run(code);
  assert.equal(error, undefined, error?.traceback);
  const [chart, main] = results;
  assert.deepEqual(chart?.chart, {
    ...{ type: 'bar', title: 'Books', x_label: 'Author', y_label: 'Copies (k)', x_unit: null, y_unit: 'k' },
    elements: [
      { label: 'A', group: 'Sold', value: 100 },
      { label: 'B', group: 'Sold', value: 200 },
    ],
  });
  assert.equal(Buffer.from(chart?.png ?? '', 'base64').toString('latin1', 1, 4), 'PNG');
  assert.deepEqual([chart?.isMainResult, main?.isMainResult, main?.json], [false, true, { a: [1, null] }]);
  const line = await run('plt.plot([1, 2, 3], [1, 4, 9]); plt.xlabel("t [s]")');
  const drawn = line.results.find((result) => result.chart !== undefined)?.chart;
  assert.equal(drawn?.type, 'line');
  assert.deepEqual(drawn?.elements, [
    {
      label: 'Line 0',
      points: [
        [1, 1],
        [2, 4],
        [3, 9],
      ],
    },
  ]);
});

test('packages are there, and pip is', async () => {
  assert.equal((await run('import PIL, numpy, pandas, requests, fontTools; numpy.arange(3).sum()')).text, '3');
  assert.match((await run('!pip --version')).logs.stdout.join(''), /^pip \d/);
});

test('a deadline of the client interrupts the cell; the context goes on with its state', async () => {
  await run('kept = 1');
  const endless = 'import time\nwhile True: time.sleep(1)';
  await assert.rejects(sandbox.runCode(endless, { timeoutMs: 1_500 }), current.TimeoutError);
  assert.equal((await run('kept')).text, '1');
});

test('contexts are made, listed, restarted and removed', async () => {
  const context = await sandbox.createCodeContext({ language: 'python', cwd: '/root' });
  const listed = async () => (await sandbox.listCodeContexts()).map(({ id }) => id).includes(context.id);
  assert.deepEqual([context.language, context.cwd, await listed()], ['python', '/root', true]);
  await run('own = 1', { context });
  await sandbox.restartCodeContext(context);
  assert.equal((await run('own', { context })).error?.name, 'NameError');
  await sandbox.removeCodeContext(context.id);
  assert.equal(await listed(), false);
  // The client leaves the timer of a request that is refused running, and this process with it.
  await assert.rejects(run('1', { context, requestTimeoutMs: 10_000 }), current.NotFoundError);
});

test('JavaScript, TypeScript and bash keep their state, too', async () => {
  await run("import { sep } from 'node:path'; const list = [1]; let n = await Promise.resolve(2)", { language: 'js' });
  assert.equal((await run('list.length + n + sep', { language: 'javascript' })).text, '3/');
  assert.equal((await run('const m: number = 4; m', { language: 'ts' })).text, '4');
  const failed = await run('null.x', { language: 'js' });
  assert.equal(failed.error?.name, 'TypeError');
  await run('cd /tmp; v=1', { language: 'bash' });
  const { logs, error } = await run('echo "$v $PWD"; (exit 3)', { language: 'bash' });
  assert.deepEqual([logs.stdout, error?.value], [['1 /tmp\n'], '3']);
});

test('nobody runs code in a secured sandbox without its token', async () => {
  const execute = (headers: Record<string, string>) =>
    host.daemon.port(sandbox.sandboxId, 49999, '/execute', { method: 'POST', body: '{"code":"1"}', headers });
  for (const headers of [{}, { 'x-access-token': 'wrong' }]) {
    const answer = await execute(headers);
    await answer.text();
    assert.equal(answer.status, 401);
  }
});

test('a server that something has ended comes back', async () => {
  await sandbox.commands.run('pkill -KILL -f aenv-code-interpreter/main.py', { user: 'root' }).catch(() => {});
  await until(async () => (await host.daemon.port(sandbox.sandboxId, 49999, '/health')).status === 200, {
    timeoutMs: 60_000,
    what: 'the server is back',
  });
  assert.equal((await run('"x" in globals()')).text, 'False');
});

test('a kill in the middle of a cell is told as such, and the image is built once', async () => {
  const running = sandbox.runCode('import time; print("begun", flush=True); time.sleep(600)', {
    timeoutMs: 300_000,
    onStdout: () => void sandbox.kill(),
  });
  await assert.rejects(running, /sandbox was killed while the request was in progress/);
  const began = performance.now();
  const again = await aenv(host.daemon, ['template', 'build', 'code-interpreter']);
  assert.equal(again.code, 0, again.stderr);
  assert.ok(performance.now() - began < 20_000, again.stderr);
});
