import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { AssetCache } from '../cache/asset-cache.ts';
import type { GuestFile } from '../contract.ts';
import { measureTscKhz } from '../kernel-args.ts';
import { buildNative } from './build.ts';

let dir: string;
let native: GuestFile;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'guest-native-'));
  native = await buildNative({ cache: new AssetCache(dir), toolchain: 'of this test' });
});
after(() => rm(dir, { recursive: true, force: true }));

const USAGE = 64;

test('the program is static, so that it runs in any root file system', async () => {
  const { stdout } = await run(['readelf', '--program-headers', '--dynamic', native.path]);
  assert.doesNotMatch(stdout, /INTERP|NEEDED/);
});

test('called in a wrong way, every applet says how it is used and does nothing', async () => {
  for (const args of [
    [],
    ['nothing'],
    ['clock'],
    ['clock', 'set'],
    ['clock', 'set', 'now'],
    ['clock', 'set', ''],
    ['clock', 'set', '1.'],
    ['clock', 'set', '1.0000000001'],
    ['clock', 'set', '-5'],
    ['clock', 'set', '1e9'],
    ['clock', 'set', '9999999999999'],
    ['reseed', 'now'],
  ]) {
    const { stderr } = await run([native.path, ...args], { okCodes: [USAGE] });
    assert.match(stderr, /^usage: /, args.join(' '));
  }
});

test('a seed that is too short or too long is refused before the kernel sees it', async () => {
  for (const size of [0, 31, 513, 100_000]) {
    const { stderr } = await run([native.path, 'reseed'], { input: Buffer.alloc(size), okCodes: [USAGE] });
    assert.match(stderr, /32..512 bytes/);
  }
});

test('the rate of the TSC is measured the same twice', { skip: process.arch !== 'x64' }, async () => {
  const first = await measureTscKhz(native);
  const second = await measureTscKhz(native);
  assert.ok(Number.isSafeInteger(first) && first > 100_000, `${first}`);
  assert.ok(Math.abs(first - second) / first < 0.001, `${first} and ${second}`);
});
