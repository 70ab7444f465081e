import { createHash } from 'node:crypto';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A program for a process of its own: serves bodies on the address in its arguments and, once the parent process has
 * answered the port with a URL, fetches and uploads them there, slowly enough that something has to wait.
 */
const SIZE = 64 * 1024 * 1024;
const CHUNK = Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * 31) & 255));

function pattern(): string {
  const hash = createHash('sha256');
  for (let sent = 0; sent < SIZE; sent += CHUNK.length) hash.update(CHUNK);
  return hash.digest('hex');
}

function pour(out: NodeJS.WritableStream): void {
  let left = SIZE / CHUNK.length;
  const more = () => {
    while (left > 0) {
      left--;
      if (!out.write(CHUNK)) return;
    }
    out.end();
  };
  out.on('drain', more);
  more();
}

function transfer(url: string, port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { 'e2b-sandbox-id': 'ia', 'e2b-sandbox-port': String(port) };
  const upload = path === '/upload';
  const outgoing = send(url + path, { agent: false, method: upload ? 'POST' : 'GET', headers }, (answer) => {
    const hash = createHash('sha256');
    let text = '';
    let sinceRest = 0;
    answer.on('data', (chunk: Buffer) => {
      if (upload) text += chunk;
      hash.update(chunk);
      sinceRest += chunk.length;
      if (sinceRest < 2 * 1024 * 1024) return;
      sinceRest = 0;
      answer.pause();
      setTimeout(() => answer.resume(), 10);
    });
    answer.on('error', reject);
    answer.on('end', () => resolve(upload ? text : hash.digest('hex')));
  });
  outgoing.on('error', reject);
  if (upload) pour(outgoing);
  else outgoing.end();
  return promise;
}

const server = createServer((request, response) => {
  if (request.method === 'POST') {
    const hash = createHash('sha256');
    request.on('data', (data: Buffer) => hash.update(data));
    request.on('end', () => response.end(hash.digest('hex')));
    return;
  }
  if (request.url === '/close') {
    request.socket.write('HTTP/1.0 200 OK\r\n\r\n');
    pour(request.socket);
    return;
  }
  if (request.url === '/length') response.setHeader('Content-Length', SIZE);
  pour(response);
});

server.listen(0, process.argv[2], () => {
  const { port } = server.address() as AddressInfo;
  process.once('message', async (url: string) => {
    const wanted = pattern();
    const results: Record<string, boolean> = {};
    for (const path of ['/length', '/chunked', '/close', '/upload']) {
      results[path] = (await transfer(url, port, path)) === wanted;
    }
    process.send?.(results);
    process.disconnect();
    server.close();
    server.closeAllConnections();
  });
  process.send?.(port);
});
