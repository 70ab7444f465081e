import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toDiskAcl } from './posix-acl.ts';

type Line = readonly [tag: number, permissions: number, id: number];
const NONE = 0xffffffff;
const BASE: readonly Line[] = [
  [1, 7, NONE],
  [4, 5, NONE],
  [32, 0, NONE],
];

function acl(lines: readonly Line[], version = 2): Buffer {
  const value = Buffer.alloc(4 + 8 * lines.length);
  value.writeUInt32LE(version);
  for (const [at, [tag, permissions, id]] of lines.entries()) {
    value.writeUInt16LE(tag, 4 + 8 * at);
    value.writeUInt16LE(permissions, 6 + 8 * at);
    value.writeUInt32LE(id, 8 + 8 * at);
  }
  return value;
}

test('ids stay where somebody is named, and go elsewhere', () => {
  const list: Line[] = [
    ...[[1, 7, NONE] as const, [2, 4, 1000] as const, [4, 5, NONE] as const],
    ...[[16, 5, NONE] as const, [32, 0, NONE] as const],
  ];
  assert.equal(
    toDiskAcl(acl(list))?.toString('hex'),
    '01000000' + '01000700' + '02000400e8030000' + '04000500' + '10000500' + '20000000',
  );
});

test('a list that says no more than the permission bits is none', () => {
  assert.equal(toDiskAcl(acl(BASE)), undefined);
});

test('lists that the kernel would refuse are refused', () => {
  const [owner, group, other] = BASE as [Line, Line, Line];
  const mask: Line = [16, 7, NONE];
  const bad: Record<string, Buffer> = {
    empty: Buffer.alloc(0),
    'another version': acl(BASE, 1),
    'cut off': acl(BASE).subarray(0, -1),
    'out of order': acl([group, owner, other]),
    'an owner twice': acl([owner, owner, group, other]),
    'no group': acl([owner, other]),
    'a name without a mask': acl([owner, [2, 7, 5], group, other]),
    'an unknown tag': acl([owner, group, mask, other, [64, 0, 0]]),
    'too many permissions': acl([[1, 8, NONE], group, other]),
  };
  for (const [what, value] of Object.entries(bad))
    assert.throws(() => toDiskAcl(value), { code: 'image_invalid' }, what);
});
