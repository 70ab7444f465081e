import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TestInterpreter } from './testing/interpreter.ts';

let interpreter: TestInterpreter;
before(async () => {
  interpreter = await TestInterpreter.start({ OF_SANDBOX: `x=y\n"q" '$HOME` });
});
after(() => interpreter[Symbol.asyncDispose]());
const run = (code: string) => interpreter.run(code, { language: 'bash' });

test('state stays: folder, variables, functions', async () => {
  assert.equal((await run('pwd')).stdout, `${interpreter.home}\n`);
  await run('cd /tmp; v=\'kept ü\'; f() { echo "f $1"; }');
  assert.equal((await run('echo "$v $PWD"; f "$(echo x)"')).stdout, 'kept ü /tmp\nf x\n');
});

test('several lines, quotes and here documents arrive as they are', async () => {
  const code = "for i in 1 2; do\n  echo \"$i !x\"\ndone\ncat <<E\n$(echo \"a b\") 'q'\nE\necho 'it'\"'\"'s'";
  assert.equal((await run(code)).stdout, "1 !x\n2 !x\na b 'q'\nit's\n");
});

test('an exit code is an error, the streams are told apart, stdin is empty', async () => {
  const { stdout, stderr, error } = await run('echo out; echo err >&2; cat; (exit 3)');
  assert.deepEqual([stdout, stderr], ['out\n', 'err\n']);
  assert.deepEqual([error?.name, error?.value], ['ExitCode', '3']);
  assert.equal((await run('nosuch')).error?.value, '127');
  assert.equal((await run('true')).error, undefined);
  const syntax = await run('if true; then');
  assert.match(syntax.stderr, /syntax error/);
  assert.equal((await run('echo on')).stdout, 'on\n');
  const pipe = await run('yes | head -1');
  assert.deepEqual([pipe.stdout, pipe.stderr], ['y\n', '']);
});

test('variables: of the sandbox, of one call, and back again', async () => {
  const code = 'printf "%s|%s" "$OF_SANDBOX" "$OF_CALL"';
  const once = await interpreter.run(code, { language: 'bash', env_vars: { OF_CALL: `a'b\n`, OF_SANDBOX: 'other' } });
  assert.equal(once.stdout, `other|a'b\n`);
  assert.equal((await run(code)).stdout, `x=y\n"q" '$HOME|`);
});

test('a cell is interrupted when its client goes away, and its shell stays', async () => {
  for (const code of [
    'sleep 600; echo after',
    'while :; do :; done',
    'f2() { sleep 600; }; for i in 1 2 3; do f2; done',
  ]) {
    await interpreter.abandon(`w=kept; echo begun; ${code}`, { language: 'bash' });
    assert.equal((await run('echo "$w"')).stdout, 'kept\n', code);
  }
});

test('a shell that ends is told, and the next cell has a new one', async () => {
  assert.match((await run('exit 7')).error?.value ?? '', /ended with exit code 7/);
  assert.equal((await run('echo "new $w"')).stdout, 'new \n');
});
