import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';

/** `make check` is worth something only if it fails: one violation of each kind is planted into a small copy of the house. */
let house: string;
before(async () => {
  house = await mkdtemp(join(tmpdir(), 'aenv-house-'));
  for (const file of ['tsconfig.json', 'biome.json', '.dependency-cruiser.cjs', 'package.json'])
    cpSync(file, join(house, file));
  symlinkSync(resolve('node_modules'), join(house, 'node_modules'));
  for (const room of ['contracts', 'platform', 'cli']) mkdirSync(join(house, 'packages', room), { recursive: true });
  plant('packages/platform/clean.ts', 'export const clean: number = 1;\n');
});
after(async () => {
  await rm(house, { recursive: true, force: true });
});

const plant = (path: string, text: string) => writeFileSync(join(house, path), text);
const exitCode = (argv: readonly string[]) => {
  const [file = '', ...args] = argv;
  return spawnSync(file, args, { cwd: house, encoding: 'utf8' }).status;
};
const types = () => exitCode([process.execPath, 'node_modules/typescript-native/bin/tsc', '--noEmit']);
const lint = () => exitCode(['node_modules/.bin/biome', 'check', '--error-on-warnings', 'packages']);
const order = () =>
  exitCode([process.execPath, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs', 'packages']);

test('a clean house passes', () => {
  assert.deepEqual([types(), lint(), order()], [0, 0, 0]);
});

test('an import against the order of the rooms fails', () => {
  plant('packages/contracts/bad.ts', "export { clean } from '../platform/clean.ts';\n");
  assert.notEqual(order(), 0);
  plant('packages/contracts/bad.ts', 'export {};\n');
});

test('a type error fails', () => {
  plant('packages/cli/bad.ts', "export const wrong: number = 'text';\n");
  assert.notEqual(types(), 0);
  plant('packages/cli/bad.ts', 'export {};\n');
});

test('a lint error fails, a promise nobody waits for among them', () => {
  plant('packages/cli/bad.ts', 'export const loose = (value: any) => value;\n');
  assert.notEqual(lint(), 0);
  plant('packages/cli/bad.ts', 'async function work() {}\nexport function start() {\n  work();\n}\n');
  assert.notEqual(lint(), 0);
  plant('packages/cli/bad.ts', 'export {};\n');
});
