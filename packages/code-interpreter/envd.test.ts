import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { TestInterpreter } from './testing/interpreter.ts';

/** What a sandbox's daemon would answer to GET /envs. */
let token: string | undefined;
let variables: Record<string, string> = {};
let broken = false;
const envd = createServer((request, response) => {
  if (broken) request.socket.destroy();
  else if (request.url !== '/envs') response.writeHead(404).end();
  else if (token !== undefined && request.headers['x-access-token'] !== token) response.writeHead(401).end('{}');
  else response.end(JSON.stringify(variables));
});

let interpreter: TestInterpreter;
before(async () => {
  await new Promise<void>((resolve) => envd.listen(0, '127.0.0.1', resolve));
  interpreter = await TestInterpreter.start({ AT_START: 'old', A: 'one' }, (envd.address() as AddressInfo).port);
});
after(async () => {
  await interpreter[Symbol.asyncDispose]();
  envd.close();
});

const SHOW = {
  python: 'import os; print(*(os.environ.get(n, "-") for n in ("AT_START", "A", "B")))',
  javascript: 'console.log(...["AT_START", "A", "B"].map((n) => process.env[n] ?? "-"))',
  bash: 'd=-; for n in AT_START A B; do v=$(printenv $n || echo -); d="$d $v"; done; echo "$d" | cut -c3-',
};

test('a new set of variables replaces the old one in every context, without left-overs', async () => {
  for (const [set, expected] of [
    [{ A: 'two', B: 'three' }, '- two three\n'],
    [{ B: 'four' }, '- - four\n'],
    [{ AT_START: 'back', A: '$HOME "q"' }, 'back $HOME "q" -\n'],
  ] as const) {
    variables = set;
    for (const [language, code] of Object.entries(SHOW)) {
      assert.equal((await interpreter.run(code, { language })).stdout, expected, language);
    }
  }
});

test('what a cell has set itself stays, as long as the set is the same', async () => {
  variables = { A: 'x' };
  await interpreter.run('os.environ["A"] = "mine"; os.environ["C"] = "mine"');
  assert.equal((await interpreter.run('os.environ["A"], os.environ["C"]')).text, "('mine', 'mine')");
});

test('who has not the token of a secured sandbox runs nothing', async () => {
  token = 'secret';
  const execute = (headers: Record<string, string>) => interpreter.post('/execute', { code: '1 + 1' }, { headers });
  for (const headers of [{}, { 'x-access-token': 'wrong' }, { 'x-access-token': 'secret2' }]) {
    const answer = await execute(headers);
    assert.equal(answer.status, 401);
    await answer.text();
  }
  assert.equal((await execute({ 'x-access-token': 'secret' })).status, 200);
  token = undefined;
  assert.equal((await execute({})).status, 200);
});

test('without an answer of the sandbox nothing runs, and it goes on afterwards', async () => {
  broken = true;
  assert.equal((await interpreter.post('/execute', { code: '1' })).status, 503);
  broken = false;
  assert.equal((await interpreter.run('1')).text, '1');
});
