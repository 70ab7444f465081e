import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAtLeast, parseVersion } from './version.ts';

test('the version is read from the first line', () => {
  const text = 'QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright (c) 2003-2025\n';
  assert.equal(parseVersion(text), '10.0.2');
  assert.equal(parseVersion('qemu-img version 10.0.2'), undefined);
  assert.equal(parseVersion(''), undefined);
});

test('versions are compared by number', () => {
  assert.equal(isAtLeast('8.2.0', '8.2.0'), true);
  assert.equal(isAtLeast('10.0.2', '8.2.0'), true);
  assert.equal(isAtLeast('8.10.0', '8.2.0'), true);
  assert.equal(isAtLeast('7.2.22', '8.2.0'), false);
  assert.equal(isAtLeast('8.1.9', '8.2.0'), false);
});
