import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { member, pieces, tar } from '../testing/tar.ts';
import { readTar } from './reader.ts';

let top = '';
const MIB = 2 ** 20;
/** more segments than a header of the old form has room for */
const PLACES = Array.from({ length: 60 }, (_, at) => at * MIB);
const SIZE = 61 * MIB + 5;

before(async () => {
  top = await mkdtemp(join(tmpdir(), 'images-sparse-'));
  await using file = await open(join(top, 'file'), 'wx');
  await file.truncate(SIZE);
  for (const at of PLACES) await file.write(`at ${at}`, at);
  await using none = await open(join(top, 'none'), 'wx');
  await none.truncate(3 * MIB);
});

after(() => rm(top, { recursive: true }));

const FORMS: Readonly<Record<string, readonly string[]>> = {
  'the old form of GNU tar': ['--format=gnu'],
  'PAX, version 0.0': ['--format=posix', '--sparse-version=0.0'],
  'PAX, version 0.1': ['--format=posix', '--sparse-version=0.1'],
  'PAX, version 1.0': ['--format=posix', '--sparse-version=1.0'],
};

for (const [name, flags] of Object.entries(FORMS)) {
  test(`sparse members in ${name} are read without their holes, and with them`, async () => {
    const archive = join(top, 'archive.tar');
    await run(['tar', '-C', top, '--sparse', ...flags, '-cf', archive, 'file', 'none']);
    const data = await readFile(archive);
    assert.ok(data.length < 2 * MIB, `${data.length} bytes`);
    const whole = await readFile(join(top, 'file'));

    const found = Buffer.alloc(SIZE);
    let bytes = 0;
    const names: string[] = [];
    for await (const one of readTar(pieces(data, 10_000))) {
      names.push(`${one.entry.name} ${one.entry.size}`);
      if (one.entry.name !== 'file') continue;
      for await (const piece of one.pieces()) {
        piece.data.copy(found, piece.offset);
        bytes += piece.data.length;
      }
    }
    assert.deepEqual(names, [`file ${SIZE}`, `none ${3 * MIB}`]);
    assert.ok(bytes < MIB, `${bytes} bytes of pieces`);
    assert.ok(found.equals(whole));

    for await (const one of readTar(pieces(data, 10_000))) {
      const content = one.entry.name === 'file' ? whole : Buffer.alloc(3 * MIB);
      let at = 0;
      for await (const chunk of one.content()) {
        assert.ok(content.subarray(at, at + chunk.length).equals(chunk), `${one.entry.name} at ${at}`);
        at += chunk.length;
      }
      assert.equal(at, content.length);
    }
  });
}

test('maps that are damaged are refused', async () => {
  const pax = (records: Record<string, string>, data = '') =>
    tar({ name: 'x', data, pax: Object.fromEntries(Object.entries(records).map(([k, v]) => [`GNU.sparse.${k}`, v])) });
  const refused = async (archive: Buffer) => {
    const read = async () => {
      for await (const one of readTar(pieces(archive))) for await (const _ of one.pieces());
    };
    await assert.rejects(read, { code: 'image_invalid', message: /sparse member/ });
  };
  await refused(pax({ size: '10', map: '0,5' }, 'only 4'.slice(0, 4)));
  await refused(pax({ size: '10', map: '5,5,0,1' }, 'sixbyt'));
  await refused(pax({ size: '10', map: '0,11' }, 'x'.repeat(11)));
  await refused(pax({ size: '10', map: '0,5,7' }, 'x'.repeat(5)));
  await refused(pax({ map: '0,5' }, 'x'.repeat(5)));
  await refused(pax({ size: '-1', map: '0,5' }, 'x'.repeat(5)));
  await refused(pax({ major: '2', minor: '0', realsize: '1' }, 'x'));
  const v1 = (map: string) => pax({ major: '1', minor: '0', realsize: '9' }, map.padEnd(512, '\0'));
  await refused(v1('1\n0\n'));
  await refused(v1('99999999\n'));
  await refused(v1('x\n'));
  await refused(v1('1\n0\n10\n'));
  await refused(v1('9'.repeat(512)));
  const old = member({ name: 'x', flag: 'S', magic: 'gnu' });
  await refused(Buffer.concat([oldMap(old, '77777777777', '00000000001'), Buffer.alloc(1024)]));
});

/** A header with one segment and a file of 8 bytes. */
function oldMap(header: Buffer, offset: string, length: string): Buffer {
  const block = Buffer.from(header);
  block.write(`${offset}\0${length}\0`, 386, 'latin1');
  block.write('00000000010\0', 483, 'latin1');
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
