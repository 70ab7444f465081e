import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { TEST_SECRET, testEnvd } from '../testing/envd.ts';

test('an answer before the end of the body leaves the connection usable for the next request', async () => {
  await using envd = await testEnvd();
  await writeFile(join(envd.dir, 'file'), '');
  const below = encodeURIComponent(join(envd.dir, 'file/below'));
  const part = `--b\r\ncontent-disposition: form-data; name="file"; filename="${envd.dir}/file/x"\r\n\r\n`;
  const cases: [string, string, string, string][] = [
    ['unknown path', '/nosuch', 'text/plain', ''],
    ['octet stream', `/files?path=${below}`, 'application/octet-stream', ''],
    ['no content type that is served', `/files?path=${below}`, 'text/plain', ''],
    ['form', '/files', 'multipart/form-data; boundary=b', part],
    ['archive', `/aenv/archive?path=${encodeURIComponent(envd.dir)}`, 'application/x-tar', 'x'.repeat(512)],
    ['init', '/init', 'application/json', ''],
    ['call', '/filesystem.Filesystem/Stat', 'application/json', ''],
    ['stream', '/process.Process/Start', 'application/connect+json', '\xff\xff\xff\xff\xff'],
  ];
  for (const [name, path, type, start] of cases) {
    const body = Buffer.concat([Buffer.from(start, 'latin1'), Buffer.alloc(5 * 1024 * 1024, 'x')]);
    const socket = connect(envd.port, '127.0.0.1');
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\nx-aenv-host-secret: ${TEST_SECRET}\r\n` +
        `connect-protocol-version: 1\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
    socket.write('GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    let answers = '';
    socket.setTimeout(10_000, () => socket.destroy(new Error(`${name}: the second request was not served`)));
    for await (const chunk of socket) answers += chunk;
    assert.match(answers, /HTTP\/1\.1 204 No Content/, name);
    assert.doesNotMatch(answers, /HTTP\/1\.1 500/, name);
  }
});
