import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { envelope, run, unary } from '../testing/rpc-client.ts';

let envd: TestEnvd;
before(async () => {
  envd = await testEnvd();
});
after(() => envd[Symbol.asyncDispose]());

const STREAM = { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' };
const JSON_TYPE = { 'content-type': 'application/json', 'connect-protocol-version': '1' };
const post = (path: string, body: Uint8Array | string, headers: Record<string, string>) =>
  fetch(`${envd.url}/${path}`, { method: 'POST', headers, body: new Uint8Array(Buffer.from(body)) });

const codeOf = async (response: Response) => ((await response.json()) as { code: unknown }).code;

/** The end frame of a streaming answer that has nothing before it. */
async function endFrame(response: Response): Promise<{ error?: { code: string; message: string } }> {
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/connect+json');
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(bytes[0], 2);
  assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
  return JSON.parse(bytes.subarray(5).toString());
}

test('a request frame may be cut anywhere on its way', async () => {
  const frame = envelope({ process: { cmd: 'echo', args: ['é🦀'] }, stdin: false });
  // Every offset of the head, and some of the message, two of them within a character.
  const cuts = [...Array(6).keys(), 20, frame.length - 20, frame.length - 19, frame.length - 1];
  await Promise.all(
    cuts.map(async (cut) => {
      const answer = await raw([frame.subarray(0, cut), frame.subarray(cut)], frame.length);
      assert.match(answer, /"exited":true/, `cut at ${cut}`);
      assert.ok(answer.includes(Buffer.from('é🦀\n').toString('base64')), `cut at ${cut}`);
    }),
  );
});

test('malformed frames are answered in the end frame, and envd lives on', async () => {
  const path = 'process.Process/Start';
  const cases: [string, Uint8Array][] = [
    ['nothing', new Uint8Array()],
    ['half a head', Buffer.from([0, 0])],
    ['half a message', envelope({ process: { cmd: 'true' } }).subarray(0, 12)],
    ['no JSON', Buffer.concat([Buffer.from([0, 0, 0, 0, 3]), Buffer.from('{{{')])],
    ['a wrong type', envelope({ process: { cmd: 5 } })],
    ['a compressed frame', envelope({ process: { cmd: 'true' } }, 1)],
    ['two messages', Buffer.concat([envelope({ process: { cmd: 'true' } }), envelope({})])],
    ['a length of 4 GiB', Buffer.from([0, 255, 255, 255, 255, 1])],
    ['no command', envelope({})],
  ];
  for (const [name, body] of cases) {
    const { error } = await endFrame(await post(path, body, STREAM));
    assert.ok(error !== undefined && error.code !== 'unknown', `${name}: ${JSON.stringify(error)}`);
  }
  assert.equal((await run(envd.url, 'true')).end?.status, 'exit status 0');
});

test('unary bodies: malformed is invalid_argument, over 4 MiB is resource_exhausted', async () => {
  const path = 'filesystem.Filesystem/Stat';
  for (const body of ['', '{', '[]', '{"path":5}', '{"path":{}}']) {
    const response = await post(path, body, JSON_TYPE);
    assert.equal(response.status, 400, body);
    assert.equal(await codeOf(response), 'invalid_argument', body);
  }
  const large = await post(path, JSON.stringify({ path: 'x'.repeat(5 * 1024 * 1024) }), JSON_TYPE);
  assert.equal(large.status, 429);
  assert.equal(await codeOf(large), 'resource_exhausted');
});

test('unknown fields are ignored, enums and int64 come as proto3 JSON has them', async () => {
  const { status, body } = await unary(envd.url, 'filesystem.Filesystem/Stat', { path: '/etc/passwd', later: [1] });
  assert.equal(status, 200);
  assert.equal((body.entry as { type: string }).type, 'FILE_TYPE_FILE');
  assert.equal(typeof (body.entry as { size: string }).size, 'string');
});

test('other content types are 415, other methods 405 with Allow, other paths 404, always as JSON', async () => {
  const wrong = await post('process.Process/List', '{}', { 'content-type': 'text/plain' });
  assert.equal(wrong.status, 415);
  assert.equal(await codeOf(wrong), 415);
  const unaryAsStream = await post('process.Process/Start', '{}', JSON_TYPE);
  assert.equal(unaryAsStream.status, 415);
  const get = await fetch(`${envd.url}/process.Process/List`);
  assert.equal(get.status, 405);
  assert.equal(get.headers.get('allow'), 'POST');
  assert.equal(await codeOf(get), 405);
  for (const path of ['process.Process/Nosuch', 'other.Service/List', 'nosuch', 'upgrade']) {
    const response = await post(path, '{}', JSON_TYPE);
    assert.equal(response.status, 404, path);
    assert.equal(await codeOf(response), 404);
  }
});

test('a message that claims to be compressed is unimplemented, a malformed deadline invalid', async () => {
  const unaryGzip = await post('process.Process/List', '{}', { ...JSON_TYPE, 'content-encoding': 'gzip' });
  assert.deepEqual([unaryGzip.status, await codeOf(unaryGzip)], [501, 'unimplemented']);
  const body = envelope({ process: { cmd: 'true' } });
  const gzip = await endFrame(
    await post('process.Process/Start', body, { ...STREAM, 'connect-content-encoding': 'gzip' }),
  );
  assert.equal(gzip.error?.code, 'unimplemented');
  const deadline = await endFrame(
    await post('process.Process/Start', body, { ...STREAM, 'connect-timeout-ms': 'soon' }),
  );
  assert.equal(deadline.error?.code, 'invalid_argument');
});

test('protobuf clients are served as well, errors and streams included', async () => {
  const missing = await post('filesystem.Filesystem/Stat', Buffer.from([0x0a, 2, 0x2f, 0x7e]), {
    'content-type': 'application/proto',
    'connect-protocol-version': '1',
  });
  assert.deepEqual([missing.status, await codeOf(missing)], [404, 'not_found']);
  // process { cmd: "true" }
  const message = Buffer.from([0x0a, 6, 0x0a, 4, 0x74, 0x72, 0x75, 0x65]);
  const stream = await post('process.Process/Start', Buffer.concat([Buffer.from([0, 0, 0, 0, 8]), message]), {
    'content-type': 'application/connect+proto',
    'connect-protocol-version': '1',
  });
  assert.match(Buffer.from(await stream.arrayBuffer()).toString('latin1'), /exit status 0.*\{\}$/s);

  // field 1 (path) = "/etc"
  const response = await post('filesystem.Filesystem/Stat', Buffer.from([0x0a, 4, 0x2f, 0x65, 0x74, 0x63]), {
    'content-type': 'application/proto',
    'connect-protocol-version': '1',
  });
  assert.equal(response.status, 200);
  assert.match(Buffer.from(await response.arrayBuffer()).toString('latin1'), /\/etc/);
});

/** Sends a Start call over a bare socket in two pieces, and reads until the server has ended the answer. */
async function raw(pieces: readonly Uint8Array[], length: number): Promise<string> {
  const socket = connect(envd.port, '127.0.0.1').setNoDelay();
  socket.write(
    'POST /process.Process/Start HTTP/1.1\r\nhost: x\r\nconnection: close\r\nconnect-protocol-version: 1\r\n' +
      `content-type: application/connect+json\r\ncontent-length: ${length}\r\n\r\n`,
  );
  for (const piece of pieces) {
    socket.write(piece);
    await delay(15);
  }
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}
