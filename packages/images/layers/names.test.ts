import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markerOf, splitName } from './names.ts';

test('names are relative to the root, however they are written', () => {
  for (const name of ['a/b', '/a/b', './a//b/', '//a/./b']) assert.deepEqual(splitName(name), ['a', 'b'], name);
  for (const name of ['', '/', '.', './', '././']) assert.deepEqual(splitName(name), [], name);
});

test('names with .. are refused', () => {
  for (const name of ['..', '../x', 'a/../b', '/..', 'a/..']) {
    assert.throws(() => splitName(name), { code: 'image_invalid', message: /points out of the image/ }, name);
  }
  assert.deepEqual(splitName('..a/b..'), ['..a', 'b..']);
});

test('whiteouts and opaque markers are told apart from files', () => {
  assert.equal(markerOf(['a', 'b']), undefined);
  assert.equal(markerOf(['a.wh.b']), undefined);
  assert.deepEqual(markerOf(['a', '.wh.b']), { kind: 'whiteout', target: 'b' });
  assert.deepEqual(markerOf(['a', '.wh..wh..opq']), { kind: 'opaque' });
  assert.deepEqual(markerOf(['.wh..wh.plnk', 'x']), { kind: 'ignored' });
  assert.deepEqual(markerOf(['.wh..wh.aufs']), { kind: 'ignored' });
});

test('whiteouts of nothing are refused', () => {
  for (const parts of [['.wh.'], ['.wh..'], ['.wh...'], ['.wh.d', 'x']]) {
    assert.throws(() => markerOf(parts), { code: 'image_invalid' }, parts.join('/'));
  }
});
