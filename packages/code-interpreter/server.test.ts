import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { Sandbox } from '@e2b/code-interpreter';
import { type Event, TestInterpreter, toCell } from './testing/interpreter.ts';

let interpreter: TestInterpreter;
before(async () => {
  interpreter = await TestInterpreter.start();
});
after(() => interpreter[Symbol.asyncDispose]());

interface ContextInfo {
  readonly id: string;
  readonly language: string;
  readonly cwd: string;
}
const contexts = async () => (await (await interpreter.get('/contexts')).json()) as ContextInfo[];
const create = async (options: object) => (await (await interpreter.post('/contexts', options)).json()) as ContextInfo;

/** Sends bytes and reads until the server has nothing more to say. */
async function raw(...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(Number(new URL(interpreter.url).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => {});
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(chunks).toString();
}

test('health, unknown paths and methods, preflights of browsers', async () => {
  assert.equal(await (await interpreter.get('/health?source=ci')).text(), '"OK"');
  assert.equal((await interpreter.get('/nope')).status, 404);
  assert.equal((await interpreter.get('/execute')).status, 405);
  const preflight = await fetch(`${interpreter.url}/execute`, {
    method: 'OPTIONS',
    headers: { origin: 'http://x', 'access-control-request-headers': 'x-access-token' },
  });
  assert.equal(preflight.status, 200);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'x-access-token');
});

test('contexts by default, made, listed, restarted, removed', async () => {
  assert.deepEqual(
    (await contexts()).map(({ language, cwd }) => [language, cwd]),
    ['python', 'javascript'].map((language) => [language, interpreter.home]),
  );
  const made = await create({ cwd: '/tmp', language: 'Python' });
  assert.deepEqual([made.language, made.cwd], ['python', '/tmp']);
  assert.deepEqual((await contexts()).at(-1), made);
  const inIt = (code: string) => interpreter.run(code, { context_id: made.id });
  assert.equal((await inIt('own = 1; import os; os.getcwd()')).text, '/tmp');
  assert.equal((await interpreter.run('"own" in globals()')).text, 'False');
  assert.equal((await interpreter.post(`/contexts/${made.id}/restart`, {})).status, 200);
  assert.equal((await inIt('"own" in globals()')).text, 'False');
  const remove = () => fetch(`${interpreter.url}/contexts/${made.id}`, { method: 'DELETE' });
  assert.equal((await remove()).status, 200);
  assert.equal((await remove()).status, 404);
  assert.equal(
    await (await interpreter.post('/execute', { code: '1', context_id: made.id })).text(),
    `Context ${made.id} not found`,
  );
});

test('a context that is removed at once leaves no process behind', async () => {
  const children = `/proc/${interpreter.pid}/task/${interpreter.pid}/children`;
  const pids = async () => (await readFile(children, 'utf8')).split(' ').filter((pid) => pid !== '');
  // One that was removed before may still be on its way out.
  const before = await pids();
  const left = async () => (await pids()).filter((pid) => !before.includes(pid));
  for (const language of ['python', 'javascript', 'bash']) {
    const { id } = await create({ language });
    await fetch(`${interpreter.url}/contexts/${id}`, { method: 'DELETE' });
  }
  for (let waited = 0; (await left()).length > 0 && waited < 400; waited++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(await left(), []);
});

test('what cannot be is refused, and told', async () => {
  const cases: readonly (readonly [string, unknown, number, RegExp])[] = [
    ['/execute', { code: '1', context_id: 'a', language: 'python' }, 400, /Only one of/],
    ['/execute', { code: '1', language: 'cobol' }, 404, /cobol/],
    ['/execute', {}, 422, /code/],
    ['/execute', { code: 5 }, 422, /code/],
    ['/execute', { code: '1', env_vars: { A: 1 } }, 422, /env_vars/],
    ['/execute', { code: '1', env_vars: { 'A=B': '1' } }, 422, /env_vars/],
    ['/execute', [], 422, /object/],
    ['/contexts', { language: 'r' }, 404, /r is not available/],
    ['/contexts', { cwd: '/nonexistent' }, 404, /nonexistent/],
  ];
  for (const [path, body, status, text] of cases) {
    const answer = await interpreter.post(path, body);
    assert.equal(answer.status, status, JSON.stringify(body));
    assert.match(await answer.text(), text);
  }
});

test('cells of one context wait for each other; one whose client is gone is not run', async () => {
  const slow = interpreter.run('import time; time.sleep(0.3); order = ["first"]');
  const waiting = new AbortController();
  const dropped = interpreter.post('/execute', { code: 'order.append("dropped")' }, { signal: waiting.signal });
  await dropped;
  waiting.abort();
  const last = interpreter.run('order');
  await slow;
  assert.equal((await last).text, "['first']");
});

test('a cell is interrupted when its client goes away, with all that it has started', async () => {
  for (const code of [
    'import time; time.sleep(600)',
    'while True: pass',
    '!sleep 600',
    'import subprocess; subprocess.run(["sleep", "600"])',
  ]) {
    await interpreter.abandon(`kept = 1; print("begun", flush=True)\n${code}`);
    assert.equal((await interpreter.run('kept')).text, '1', code);
  }
});

test('a quiet cell sends a sign of life', { timeout: 30_000 }, async () => {
  const { events } = await interpreter.run('import time; time.sleep(5.5)');
  assert.deepEqual(
    events.map(({ type }) => type),
    ['number_of_executions', 'keepalive', 'end_of_execution'],
  );
});

test('a flood to a slow reader arrives whole, and the server does not grow', { timeout: 120_000 }, async () => {
  const size = 50 * 1024 * 1024;
  const code = `import os\nfor _ in range(${size / 65536}): os.write(1, b"x" * 65535 + b"\\n")`;
  const answer = await interpreter.post('/execute', { code });
  await new Promise((resolve) => setTimeout(resolve, 500));
  const status = await readFile(`/proc/${interpreter.pid}/status`, 'utf8');
  assert.ok(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) < 64 * 1024, status);
  assert.equal((await interpreter.run('echo other contexts go on', { language: 'bash' })).error, undefined);
  const cell = toCell(await answer.text());
  assert.equal(cell.stdout.length, size);
});

test('requests may be cut anywhere, chunked, and follow each other on one connection', async () => {
  const body = JSON.stringify({ code: '"ü"' });
  const half = Math.floor(body.length / 2);
  const chunked = [body.slice(0, half), body.slice(half)]
    .map((part) => `${Buffer.byteLength(part).toString(16)};ext=1\r\n${part}\r\n`)
    .join('');
  const request =
    `POST /execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}0\r\nTrailer: x\r\n\r\n` +
    `\r\nPOST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}` +
    'GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const whole = await raw(request);
  assert.equal(whole.match(/"text": "\\u00fc"/g)?.length, 2);
  assert.match(whole, /"OK"$/);
  const bytes = Buffer.from(request);
  const unchanging = (text: string) => text.replace(/"execution_count": \d+/g, '').replace(/\r\n[0-9a-f]+\r\n/g, '');
  for (let at = 1; at < bytes.length; at += 7) {
    assert.equal(unchanging(await raw(bytes.subarray(0, at), bytes.subarray(at))), unchanging(whole), `cut at ${at}`);
  }
});

test('what is no request is refused, and the server goes on', async () => {
  const cases: readonly (readonly [string | Buffer, RegExp])[] = [
    ['nonsense\r\n\r\n', /^HTTP\/1.1 400 /],
    ['GET /health HTTP/2.0\r\n\r\n', /^HTTP\/1.1 505 /],
    [`GET / HTTP/1.1\r\nA: ${'x'.repeat(70_000)}`, /^HTTP\/1.1 431 /],
    ['POST /execute HTTP/1.1\r\nContent-Length: -1\r\n\r\n', /^HTTP\/1.1 400 /],
    ['POST /execute HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n', /^HTTP\/1.1 413 /],
    ['POST /execute HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', /^HTTP\/1.1 400 /],
    ['POST /execute HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', /^HTTP\/1.1 400 /],
    ['POST /execute HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc', /^HTTP\/1.1 400 /],
    [
      'POST /execute HTTP/1.0\r\nContent-Length: 12\r\n\r\n{"code":"1"} ',
      /^HTTP\/1.1 200 [\s\S]*end_of_execution"}\n$/,
    ],
    ['GET /health HTTP/1.1\r\nBad Name : x\r\n\r\n', /^HTTP\/1.1 400 /],
  ];
  for (const [bytes, expected] of cases) assert.match(await raw(bytes), expected, bytes.toString().slice(0, 60));
  assert.equal((await interpreter.get('/health')).status, 200);
});

test('the published package finds everything where it looks for it', async () => {
  const sandbox = Reflect.construct(Sandbox, [
    { sandboxId: 'i1', envdVersion: '0.5.7', apiKey: 'e2b_00', sandboxUrl: interpreter.url },
  ]) as Sandbox;
  const seen: string[] = [];
  const execution = await sandbox.runCode('import sys; print("ü"); print("e", file=sys.stderr); display(1); 2', {
    onStdout: ({ line }) => void seen.push(line),
    onResult: ({ text }) => void seen.push(String(text)),
    envs: { A: 'b' },
  });
  assert.deepEqual([execution.text, execution.logs.stdout, execution.logs.stderr], ['2', ['ü\n'], ['e\n']]);
  assert.deepEqual(seen, ['ü\n', '1', '2']);
  const context = await sandbox.createCodeContext({ cwd: '/tmp', language: 'bash' });
  assert.deepEqual((await sandbox.runCode('pwd', { context })).logs.stdout, ['/tmp\n']);
  await sandbox.restartCodeContext(context);
  await sandbox.removeCodeContext(context);
  assert.equal(
    (await sandbox.listCodeContexts()).some(({ id }) => id === context.id),
    false,
  );
  // The package leaves the timer of a request that is refused, a minute by default, and it keeps the process of the tests.
  await assert.rejects(sandbox.runCode('1', { context, requestTimeoutMs: 5_000 }), /not found/);
  await assert.rejects(sandbox.runCode('import time; time.sleep(60)', { timeoutMs: 300 }), /timed out/i);
  assert.equal((await sandbox.runCode('3')).text, '3');
});

test('the stream is plain ASCII, so that no network cut breaks a character', async () => {
  const answer = await interpreter.post('/execute', { code: 'print("ü€😀"); "ü€😀"' });
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.ok(bytes.every((byte) => byte < 0x80));
  const { results, stdout } = toCell(bytes.toString());
  assert.deepEqual([stdout, (results[0] as Event).text], ['ü€😀\n', 'ü€😀']);
});

test('what is loaded ahead is there in every context, and no two contexts draw the same numbers', async () => {
  await using warm = await TestInterpreter.start();
  assert.equal((await warm.get('/warm')).status, 200);
  const code = 'import sys; loaded = "asyncio" in sys.modules; import random; random.random(), loaded';
  const context = (await (await warm.post('/contexts', {})).json()) as ContextInfo;
  const first = (await warm.run(code)).text;
  const second = (await warm.run(code, { context_id: context.id })).text;
  assert.notEqual(first, second);
  for (const text of [first, second]) assert.match(text ?? '', /^\(0\.\d+, True\)$/);
  assert.equal((await warm.get('/warm')).status, 200);
  assert.equal(((await (await warm.get('/contexts')).json()) as unknown[]).length, 3);
});
