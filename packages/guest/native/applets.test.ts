import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import type { GuestFile } from '../contract.ts';
import { measureTscKhz } from '../kernel-args.ts';
import { nativeForTests } from '../testing/native.ts';

let dir: string;
let native: GuestFile;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'guest-native-'));
  native = await nativeForTests(dir);
});
after(() => rm(dir, { recursive: true, force: true }));

const USAGE = 64;

test('the program is static, so that it runs in any root file system', async () => {
  const { stdout } = await run(['readelf', '--program-headers', '--dynamic', native.path]);
  assert.doesNotMatch(stdout, /INTERP|NEEDED/);
});

test('called in a wrong way, every applet says how it is used and does nothing', async () => {
  for (const args of [[], ['nothing'], ['clock'], ['clock', 'set', '1'], ['restore', 'now'], ['sync', 'now']]) {
    const { stderr } = await run([native.path, ...args], { okCodes: [USAGE] });
    assert.match(stderr, /^usage: /, args.join(' '));
  }
});

test('a restore step that makes no sense is refused before the kernel sees it', async () => {
  const steps = [
    ...['now 1 1', '', '1', '1 1', '1. 1 1', '1.0000000001 1 1', '-5 1 1', '1e9 1 1', '9999999999999 1 1', '1 '].map(
      (text) => `clock ${text}`,
    ),
    ...['1 x 1', '1 1 ', '1 1 x', '1 1 65536', '1 1 1 '].map((text) => `clock ${text}`),
    ...[0, 31, 513].map((size) => `reseed\0${'00'.repeat(size)}`),
    ...['0'.repeat(63), 'g'.repeat(64)].map((text) => `reseed\0${text}`),
    ...['', 'x', '65536', '123456'].map((text) => `disconnect ${text}`),
  ];
  const { stdout } = await run([native.path, 'restore'], {
    input: Buffer.from(steps.map((step) => `${step}\0`).join('')),
  });
  assert.deepEqual(stdout.split('\0'), [...steps.map(() => String(constants.errno.EINVAL)), '']);
  await run([native.path, 'restore'], { input: Buffer.from('nothing\0'), okCodes: [USAGE] });
});

test('the rate of the TSC is measured the same twice', { skip: process.arch !== 'x64' }, async () => {
  const first = await measureTscKhz(native);
  const second = await measureTscKhz(native);
  assert.ok(Number.isSafeInteger(first) && first > 100_000, `${first}`);
  assert.ok(Math.abs(first - second) / first < 0.001, `${first} and ${second}`);
});
