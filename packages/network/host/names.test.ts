import assert from 'node:assert/strict';
import test from 'node:test';
import { instanceNames, isTag, ownerChain, tagOf } from './names.ts';

test('link names fit into what the kernel takes, for every slot', () => {
  const names = instanceNames(tagOf('/run/aenv'));
  for (const name of [names.link(1023), names.addressLabel]) assert.ok(name.length <= 15, name);
});

test("an instance knows its own names and nobody else's", () => {
  const a = instanceNames('abcde');
  const b = instanceNames('abcdf');
  assert.ok(a.ownsLink(a.link(7)) && a.ownsNetns(a.netns(7)));
  for (const name of [b.link(7), 'aeabcdev', 'aeabcdevx', 'aeabcdev1x', 'eth0', '']) assert.ok(!a.ownsLink(name), name);
  for (const name of [b.netns(7), 'aenv-abcde-', 'aenv-abcde-1-2', 'aenv-abcde']) assert.ok(!a.ownsNetns(name), name);
  assert.notEqual(a.claimMetric, b.claimMetric);
});

test('a tag depends on the folder and on the attempt', () => {
  const tags = [tagOf('/run/a'), tagOf('/run/b'), tagOf('/run/a', 1)];
  assert.equal(new Set(tags).size, 3);
  assert.ok(tags.every(isTag));
  assert.equal(tagOf('/run/a'), tags[0]);
  assert.notEqual(ownerChain('/run/a'), ownerChain('/run/b'));
});

test('a tag that would not fit into the names is refused', () => {
  for (const tag of ['', 'abcd', 'abcdef', 'ABCDE', 'abc-e', '../ab'])
    assert.throws(() => instanceNames(tag), RangeError);
});
