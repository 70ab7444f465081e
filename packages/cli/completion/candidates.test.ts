import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgram } from '../program.ts';
import { candidates } from './candidates.ts';

const lookups = {
  ids: async () => ['iabc', 'ixyz'],
  templates: async () => ['base'],
  snapshots: async () => ['default/ready:v1'],
};
const complete = (...words: string[]) => candidates(createProgram('0'), words, lookups);

test('commands, also those of the host', async () => {
  assert.deepEqual(await complete('do'), ['doctor', 'down', 'download']);
  assert.deepEqual(await complete('template', ''), ['build', 'get', 'ls', 'rm', 'tag', 'untag']);
  assert.ok(!(await complete('')).includes('__complete'));
});

test('ids where an id stands, and only there', async () => {
  assert.deepEqual(await complete('exec', 'ia'), ['iabc']);
  assert.deepEqual(await complete('rm', 'iabc', ''), ['iabc', 'ixyz']);
  assert.deepEqual(await complete('upload', 'iabc', ''), []);
});

test('templates where one is started, after options with and without values', async () => {
  assert.deepEqual(await complete('start', '-d', '--timeout', '5', ''), ['base']);
});

test('snapshots where one is shown or removed', async () => {
  assert.deepEqual(await complete('snapshot', 'get', ''), ['default/ready:v1']);
  assert.deepEqual(await complete('snapshot', 'rm', 'x', 'def'), ['default/ready:v1']);
  assert.deepEqual(await complete('snapshot', 'create', 'i'), ['iabc', 'ixyz']);
});

test('options of the command and of the program', async () => {
  assert.deepEqual(await complete('exec', '--us'), ['--user']);
  assert.ok((await complete('exec', '--')).includes('--url'));
});
