import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type CpioEntry, writeCpio } from './cpio.ts';

interface Member {
  readonly name: string;
  readonly mode: number;
  readonly owner: readonly number[];
  readonly time: number;
  readonly device: readonly number[];
  readonly data: string;
}

/** Reads an archive as the kernel does: fixed hexadecimal fields, everything at multiples of four bytes. */
function readCpio(archive: Buffer): Member[] {
  const members: Member[] = [];
  const aligned = (at: number) => Math.ceil(at / 4) * 4;
  for (let at = 0; at < archive.length; ) {
    assert.equal(archive.toString('latin1', at, at + 6), '070701');
    const field = (index: number) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16);
    const nameEnd = at + 110 + field(11);
    const name = archive.toString('utf8', at + 110, nameEnd - 1);
    assert.equal(archive[nameEnd - 1], 0);
    const data = archive.subarray(aligned(nameEnd), aligned(nameEnd) + field(6));
    members.push({
      name,
      mode: field(1),
      owner: [field(2), field(3)],
      time: field(5),
      device: [field(9), field(10)],
      data: data.toString(),
    });
    at = aligned(aligned(nameEnd) + data.length);
  }
  return members;
}

const ENTRIES: readonly CpioEntry[] = [
  { kind: 'folder', path: 'dev', mode: 0o755 },
  { kind: 'character-device', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
  { kind: 'file', path: 'init', mode: 0o755, data: Buffer.from('12345') },
  { kind: 'file', path: 'empty', mode: 0o644, data: Buffer.alloc(0) },
];

test('folders, devices and files come out as they went in, root-owned and without a time', () => {
  const members = readCpio(writeCpio(ENTRIES));
  assert.deepEqual(
    members.map(({ name, mode, data }) => [name, mode.toString(8), data]),
    [
      ['dev', '40755', ''],
      ['dev/console', '20600', ''],
      ['init', '100755', '12345'],
      ['empty', '100644', ''],
      ['TRAILER!!!', '0', ''],
    ],
  );
  assert.deepEqual(members[1]?.device, [5, 1]);
  assert.ok(members.every(({ owner, time }) => owner.every((id) => id === 0) && time === 0));
});

test('names and data of every length keep the alignment', () => {
  for (let length = 1; length <= 9; length += 1) {
    const data = Buffer.alloc(length, 'x');
    const archive = writeCpio([{ kind: 'file', path: 'n'.repeat(length), mode: 0o644, data }]);
    assert.equal(archive.length % 4, 0);
    assert.equal(readCpio(archive)[0]?.data, data.toString());
  }
});

test('archives one after another are one archive, and the same entries give the same bytes', () => {
  const both = readCpio(Buffer.concat([writeCpio(ENTRIES.slice(0, 2)), writeCpio(ENTRIES.slice(2))]));
  assert.deepEqual(
    both.map(({ name }) => name).filter((name) => name !== 'TRAILER!!!'),
    ENTRIES.map(({ path }) => path),
  );
  assert.deepEqual(writeCpio(ENTRIES), writeCpio(ENTRIES));
});

test('a name that is absolute, empty or has a zero byte is refused', () => {
  for (const path of ['/init', '', 'a\0b']) {
    assert.throws(() => writeCpio([{ kind: 'folder', path, mode: 0o755 }]), AenvError);
  }
});
