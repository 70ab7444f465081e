import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { createApiListener } from './listener.ts';
import { type ApiFixture, apiFixture, KEY } from './testing/fixture.ts';

describe('the API on a socket', () => {
  let api: ApiFixture;
  let server: Server;
  let port: number;
  beforeEach(async () => {
    api = apiFixture();
    server = createServer(createApiListener(api.api, silentLogger)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await api[Symbol.asyncDispose]();
  });

  /** Writes the pieces one after the other and reads until the server closes the connection. */
  const exchange = async (...pieces: string[]): Promise<string> => {
    const socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    // A reset after the answer is the server's right.
    socket.on('error', () => {});
    const closed = once(socket, 'close');
    for (const piece of pieces) {
      if (socket.destroyed) break;
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await closed;
    return text;
  };
  const head = (line: string, ...more: string[]) =>
    `${[`${line} HTTP/1.1`, 'Host: x', `X-API-KEY: ${KEY}`, ...more].join('\r\n')}\r\n\r\n`;
  const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));

  it('takes a body in chunks without a length, cut anywhere', async () => {
    const request = head('POST /sandboxes', 'Transfer-Encoding: chunked', 'Connection: close');
    const text = await exchange(request, 'd\r\n{"templateID"', '\r\n7\r\n:"base"\r\n1', '\r\n}\r\n0\r\n', '\r\n');
    assert.deepEqual(statuses(text), [201]);
    assert.match(text, /"envdVersion":"0\.6\.13"/);
    assert.equal(api.sandboxes.created[0]?.template, 'base');
  });

  it('keeps the connection over refused bodies, DELETE with a body and bodies of GET', async () => {
    const stranger = head('POST /sandboxes', 'Content-Length: 5').replace(KEY, 'wrong');
    const text = await exchange(
      `${stranger}hello`,
      `${head('DELETE /sandboxes/i1', 'Content-Length: 2')}{}`,
      `${head('GET /teams', 'Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
      head('GET /health', 'Connection: close'),
    );
    assert.deepEqual(statuses(text), [401, 404, 200, 204]);
    assert.doesNotMatch(text.slice(text.lastIndexOf('HTTP/1.1 204')), /content-length|transfer-encoding/i);
  });

  it('answers 413 to a body over the limit, chunked or announced, and the client can read it', async () => {
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const chunked = head('POST /sandboxes', 'Transfer-Encoding: chunked', 'Connection: close');
    const announced = head('POST /sandboxes', `Content-Length: ${40 * 0x10000}`, 'Connection: close');
    const body = Array.from({ length: 40 }, () => chunk);
    assert.deepEqual(statuses(await exchange(chunked, ...body, '0\r\n\r\n')), [413]);
    assert.deepEqual(statuses(await exchange(announced, ...body)), [413]);
  });

  it('survives a client that leaves in the middle of a body', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.write(head('POST /sandboxes', 'Content-Length: 100'));
    socket.write('{"templateID"');
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    await once(socket, 'close');
    assert.deepEqual(statuses(await exchange(head('GET /health', 'Connection: close'))), [204]);
    assert.deepEqual(api.sandboxes.created, []);
  });

  it('answers odd request lines as JSON', async () => {
    for (const [line, status] of [
      ['TRACE /sandboxes', 400],
      ['OPTIONS *', 404],
      ['GET //x/health', 404],
      [`GET http://elsewhere.test/teams`, 200],
      ['GET /sandboxes/i1?x=%', 404],
      ['HEAD /health', 204],
      ['HEAD /teams', 200],
    ] as const) {
      const text = await exchange(head(line, 'Connection: close'));
      assert.deepEqual(statuses(text), [status], line);
    }
    assert.equal(
      await exchange(head('HEAD /teams', 'Connection: close')).then((text) => text.split('\r\n\r\n')[1]),
      '',
    );
  });

  it('refuses a repeated key', async () => {
    const twice = head('GET /teams', `X-Api-Key: ${KEY}`, 'Connection: close');
    assert.deepEqual(statuses(await exchange(twice)), [401]);
  });
});
