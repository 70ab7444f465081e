import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import type { SdkBed } from './bed.ts';

const BYTES = new Uint8Array(70_000).map((_, i) => i % 256);
const TEXT = 'zweite Zeile €\n';

const streamOf = (...parts: Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
const collect = async (stream: ReadableStream<Uint8Array>) => new Uint8Array(await new Response(stream).arrayBuffer());

export const files: Group<SdkBed> = {
  title: 'Files',
  scenarios: [
    {
      name: 'write text, bytes, a blob and a stream; folders come by themselves',
      async run(bed) {
        const { files } = await bed.main();
        const info = await files.write('new/dir/text', TEXT);
        assert.deepEqual([info.name, info.path], ['text', '/home/user/new/dir/text']);
        await files.write('new/bytes', BYTES.buffer);
        await files.write('new/blob', new Blob([BYTES]));
        await files.write('new/stream', streamOf(BYTES.subarray(0, 10), BYTES.subarray(10)));
        assert.equal(await files.read('new/dir/text'), TEXT);
        for (const name of ['bytes', 'blob', 'stream']) {
          assert.deepEqual(await files.read(`new/${name}`, { format: 'bytes' }), BYTES, name);
        }
        await files.write('new/bytes', 'shorter');
        assert.equal(await files.read('new/bytes'), 'shorter');
      },
    },
    {
      name: 'read as text, bytes, blob and stream; an empty file',
      async run(bed) {
        const { files } = await bed.main();
        await files.write('read.bin', new Blob([BYTES]));
        assert.deepEqual(await files.read('read.bin', { format: 'bytes' }), BYTES);
        const blob = await files.read('read.bin', { format: 'blob' });
        assert.deepEqual(new Uint8Array(await blob.arrayBuffer()), BYTES);
        assert.deepEqual(await collect(await files.read('read.bin', { format: 'stream' })), BYTES);
        await files.write('empty', '');
        assert.equal(await files.read('empty'), '');
      },
    },
    {
      name: 'several files in one call',
      async run(bed) {
        const { files } = await bed.main();
        const many = [
          { path: 'many/one.txt', data: 'first' },
          { path: '/tmp/many zwei.txt', data: TEXT },
        ];
        const paths = ['/home/user/many/one.txt', '/tmp/many zwei.txt'];
        const written = await files.write(many);
        assert.deepEqual(
          written.map(({ path }) => path),
          paths,
        );
        assert.equal(await files.read('/tmp/many zwei.txt'), TEXT);
      },
    },
    {
      name: 'several files by their own method',
      since: '2.23.0',
      async run(bed) {
        const { files } = await bed.main();
        const written = await files.writeFiles([
          { path: 'writeFiles/a', data: 'a' },
          { path: 'writeFiles/b', data: new Blob([BYTES]) },
        ]);
        assert.deepEqual(
          written.map(({ path, type }) => [path, type]),
          [
            ['/home/user/writeFiles/a', 'file'],
            ['/home/user/writeFiles/b', 'file'],
          ],
        );
        assert.deepEqual(await files.read('writeFiles/b', { format: 'bytes' }), BYTES);
      },
    },
    {
      name: 'octet-stream and gzip, both ways',
      since: '2.23.0',
      async run(bed) {
        const { files } = await bed.main();
        await files.write('plain.bin', new Blob([BYTES]), { useOctetStream: true });
        await files.write('gzip.bin', new Blob([BYTES]), { gzip: true });
        for (const name of ['plain.bin', 'gzip.bin']) {
          assert.deepEqual(await files.read(name, { format: 'bytes', gzip: true }), BYTES, name);
          assert.equal((await files.getInfo(name)).size, BYTES.length);
        }
      },
    },
    {
      name: '4 MiB up and down',
      async run(bed) {
        const { files } = await bed.main();
        const big = new Uint8Array(4 * 2 ** 20).map((_, i) => (i * 7 + (i >> 9)) % 256);
        await files.write('big.bin', new Blob([big]));
        const back = await files.read('big.bin', { format: 'bytes' });
        assert.ok(Buffer.from(big.buffer).equals(back));
      },
    },
    {
      name: 'list with a depth, sorted, each entry complete',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.commands.run(
          'mkdir -p list/sub/deep && cd list && echo x > b.txt && chmod 640 b.txt && touch sub/c sub/deep/d && ln -s b.txt a',
        );
        const names = async (depth?: number) =>
          (await sandbox.files.list('list', depth === undefined ? {} : { depth })).map(({ path }) => path);
        const under = (...rest: string[]) => rest.map((name) => `/home/user/list/${name}`);
        assert.deepEqual(await names(), under('a', 'b.txt', 'sub'));
        assert.deepEqual(await names(2), under('a', 'b.txt', 'sub', 'sub/c', 'sub/deep'));
        assert.deepEqual(await names(3), under('a', 'b.txt', 'sub', 'sub/c', 'sub/deep', 'sub/deep/d'));
        const [link, file, folder] = await sandbox.files.list('list');
        assert.deepEqual([link?.type, link?.symlinkTarget], ['file', '/home/user/list/b.txt']);
        assert.deepEqual([file?.name, file?.type, file?.size, file?.mode], ['b.txt', 'file', 2, 0o640]);
        assert.deepEqual([file?.permissions, file?.owner, file?.group], ['-rw-r-----', 'user', 'user']);
        assert.ok(Math.abs((file?.modifiedTime?.getTime() ?? 0) - Date.now()) < 60_000);
        assert.deepEqual([folder?.type, folder?.permissions], ['dir', 'drwxr-xr-x']);
        await assert.rejects(sandbox.files.list('list', { depth: 0 }), bed.sdk.InvalidArgumentError);
      },
    },
    {
      name: 'describe a file, a folder and a link',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.commands.run('mkdir -p info && echo xyz > info/file && ln -s file info/link');
        const file = await sandbox.files.getInfo('info/file');
        assert.deepEqual([file.name, file.path, file.type, file.size], ['file', '/home/user/info/file', 'file', 4]);
        assert.equal((await sandbox.files.getInfo('info')).type, 'dir');
        const link = await sandbox.files.getInfo('info/link');
        assert.deepEqual([link.type, link.symlinkTarget], ['file', '/home/user/info/file']);
        await assert.rejects(sandbox.files.getInfo('info/nothing'), bed.sdk.NotFoundError);
      },
    },
    {
      name: 'exists, makeDir, rename, remove',
      async run(bed) {
        const { files } = await bed.main();
        assert.equal(await files.makeDir('made/sub'), true);
        assert.equal(await files.makeDir('made/sub'), false);
        await files.write('made/a', 'a');
        const moved = await files.rename('made/a', 'made/sub/b');
        assert.deepEqual([moved.name, moved.path], ['b', '/home/user/made/sub/b']);
        assert.equal(await files.exists('made/a'), false);
        assert.equal(await files.exists('made/sub/b'), true);
        await assert.rejects(files.rename('made/nothing', 'made/x'), bed.sdk.NotFoundError);
        await files.remove('made');
        assert.equal(await files.exists('made'), false);
        await files.remove('made');
      },
    },
    {
      name: 'as another user: own home, own files',
      async run(bed) {
        const sandbox = await bed.main();
        const written = await sandbox.files.write('of-root', 'x', { user: 'root' });
        assert.equal(written.path, '/root/of-root');
        const info = await sandbox.files.getInfo('of-root', { user: 'root' });
        assert.deepEqual([info.path, info.owner], ['/root/of-root', 'root']);
        assert.equal(await sandbox.files.read('of-root', { user: 'root' }), 'x');
        await sandbox.files.write('/of-user', 'x');
        assert.equal((await sandbox.files.getInfo('/of-user')).owner, 'user');
      },
    },
    {
      name: 'metadata of a file: written, listed, kept when it moves, cleared when written without',
      since: '2.45.0',
      async run(bed) {
        const { files } = await bed.main();
        const metadata = { kind: 'report', 'x-y': 'a b=c' };
        const written = await files.write('meta/a', 'a', { metadata });
        assert.deepEqual(written.metadata, metadata);
        assert.deepEqual((await files.getInfo('meta/a')).metadata, metadata);
        assert.deepEqual((await files.list('meta'))[0]?.metadata, metadata);
        assert.deepEqual((await files.rename('meta/a', 'meta/b')).metadata, metadata);
        await files.write('meta/b', 'again');
        assert.equal((await files.getInfo('meta/b')).metadata, undefined);
      },
    },
  ],
};
