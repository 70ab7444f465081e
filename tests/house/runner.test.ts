import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { identify } from '@aenv/platform/process/identity.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { SuiteResult } from '../../tools/test/run-suite.ts';

/**
 * Files that are run by tools/test, which share a process: one with tests of all ends, one that is none, one that hangs,
 * with children, and one that ends its process; the last one is run by the process that takes over.
 */
const MIXED = `
import { after, before, suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
const order = [];
before(() => order.push('before'));
after(() => console.log('order: ' + order.join(' ')));
test('awaits', async (t) => {
  await delay(2);
  await t.test('within', async () => { await delay(2); order.push('within'); });
});
test('a throw that nobody catches', async () => { setTimeout(() => { throw new Error('thrown late'); }, 5); await delay(1000); });
test('a rejection that nobody catches', async () => { void delay(5).then(() => { throw new Error('rejected late'); }); await delay(1000); });
test('a skipped one', { skip: 'no reason' }, () => {});
suite('of a suite', async () => { await delay(2); test('the last', () => { order.push('last'); }); });
`;
const HANGING = `
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
test('hangs', async () => {
  const plain = spawn('sleep', ['1000'], { stdio: 'inherit' });
  const own = spawn('sleep', ['1000'], { stdio: 'inherit', detached: true, env: {} });
  writeFileSync(process.env.PIDS, [process.pid, plain.pid, own.pid].join(' '));
  process.on('SIGTERM', () => {});
  await new Promise((resolve) => setTimeout(resolve, 1_000_000));
});
`;
const FILES = {
  'mixed.test.mjs': MIXED,
  'broken.test.mjs': 'this is no program',
  'hanging.test.mjs': HANGING,
  'ending.test.mjs': "import { test } from 'node:test'; test('ends', () => process.kill(process.pid, 'SIGKILL'));",
  'last.test.mjs': "import { test } from 'node:test'; test('is run', () => {});",
};
let folder: string;
let result: SuiteResult;
let output: string;
const path = (name: string) => join(folder, name);

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aenv-runner-'));
  for (const [name, text] of Object.entries(FILES)) await writeFile(path(name), text);
  const suite = {
    name: 'planted',
    files: Object.keys(FILES).map(path),
    ...{ concurrency: 1, shareProcesses: true, bootsVms: false, timeoutMs: 4_000 },
  };
  const main = `
    const { runSuite } = await import(${JSON.stringify(pathToFileURL(resolve('tools/test/run-suite.ts')).href)});
    process.stdout.write('\\nresult: ' + JSON.stringify(await runSuite(${JSON.stringify(suite)})));`;
  await writeFile(path('main.mjs'), main);
  const env: NodeJS.ProcessEnv = { ...process.env, PIDS: path('pids') };
  // It is no test of this one.
  delete env.NODE_TEST_CONTEXT;
  ({ stdout: output } = await run([process.execPath, path('main.mjs')], { env }));
  result = JSON.parse(output.slice(output.lastIndexOf('\nresult: ') + 9)) as SuiteResult;
});
after(() => rm(folder, { recursive: true, force: true }));

test('what passes, fails late or is skipped is put down to its test and file', () => {
  assert.deepEqual([result.passed, result.skipped], [4, 1], output);
  assert.deepEqual(
    result.failures.slice(0, 2).map((failure) => failure.replace(/^.*\.mjs /, '')),
    ['a throw that nobody catches: thrown late', 'a rejection that nobody catches: rejected late'],
  );
  assert.match(output, /thrown late/);
  assert.match(output, /rejected late/);
  assert.match(output, /order: before within last/, 'hooks belong to their file');
});

test('a file that hangs is named, and ends with all that it has started', async () => {
  const told = result.failures.find((failure) => failure.includes('did not end within 4 s'));
  assert.ok(told?.startsWith(path('hanging.test.mjs')), JSON.stringify(result.failures));
  const pids = (await readFile(path('pids'), 'utf8')).split(' ').map(Number);
  assert.equal(pids.length, 3);
  for (const pid of pids) assert.equal(await identify(pid), undefined, `process ${pid} is gone`);
});

test('a file that cannot be loaded, and one that ends its process, are named, and those after them are run', () => {
  const about = (name: string) => result.failures.filter((failure) => failure.includes(path(name)));
  assert.match(about('broken.test.mjs').join(), /Unexpected identifier/, result.failures.join('\n'));
  assert.match(about('ending.test.mjs').join(), /did not come to its end/);
  assert.match(output, /✔ is run/);
});
