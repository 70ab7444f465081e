import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Depth, deepest, depthOf, isWithin } from './addresses.ts';

test('every address has its depth, however it is written', () => {
  const cases: Record<Depth, string[]> = {
    public: [
      '93.184.215.14',
      '2606:2800:220:1::1',
      '172.32.0.1',
      '::ffff:8.8.8.8',
      '64:ff9b::808:808',
      '2002:808:808::',
    ],
    private: ['127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '100.64.0.1', '::1', 'fd12::1', '::ffff:10.0.0.1'],
    'link-local': ['169.254.169.254', '0.0.0.0', 'fe80::1', '::', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe'],
  };
  cases['link-local'].push('fd00:ec2::254', '100.100.100.200', '224.0.0.1', '255.255.255.255', 'ff02::1', 'nonsense');
  cases['link-local'].push('64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1', 'fe80::1%eth0', '0:0:0:0:0:ffff:169.254.1.1');
  for (const [depth, addresses] of Object.entries(cases)) {
    for (const address of addresses) assert.equal(depthOf(address), depth, address);
  }
});

test('a registry leads only to what is not further inside than itself', () => {
  assert.ok(isWithin('public', 'public') && isWithin('public', 'private') && isWithin('private', 'private'));
  assert.ok(!isWithin('private', 'public') && !isWithin('link-local', 'private'));
  assert.equal(deepest(['public', 'private', 'public']), 'private');
  assert.equal(deepest([]), 'public');
});
