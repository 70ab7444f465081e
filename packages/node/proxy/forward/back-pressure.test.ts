import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, openSocket } from '../testing/clients.ts';
import { House } from '../testing/house.ts';

const get = (port: number, version = '1.1', method = 'GET') =>
  `${method} / HTTP/${version}\r\nHost: x\r\nConnection: close\r\ne2b-sandbox-id: ia\r\ne2b-sandbox-port: ${port}\r\n\r\n`;

test('a client that is slow holds the server back instead of filling memory', async () => {
  await using house = await House.open();
  let written = 0;
  const guest = await house.serve('ia', (_request, response) => {
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      while (written < 512 * 1024 * 1024) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
    };
    response.on('drain', more);
    more();
  });
  const socket = await openSocket(house.url);
  socket.pause();
  socket.write(get(guest.port));
  await eventually(() => written > 0, 'first write');
  let before = -1;
  while (before !== written) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken from the server`);
  socket.destroy();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'upstream connection gone');
});

test('a server that reads slowly holds the client back', async () => {
  await using house = await House.open({ stalledMs: 1_000 });
  const guest = await house.serve('ia', () => {});
  const socket = await openSocket(house.url);
  const head = get(guest.port, '1.1', 'POST').replace('\r\n\r\n', '\r\nContent-Length: 536870912\r\n\r\n');
  socket.write(head);
  const chunk = Buffer.alloc(64 * 1024);
  const more = () => {
    while (socket.bytesWritten < 512 * 1024 * 1024 && socket.write(chunk));
  };
  socket.on('drain', more);
  socket.on('error', () => {});
  more();
  let before = -1;
  while (before !== socket.bytesWritten - socket.writableLength) {
    before = socket.bytesWritten - socket.writableLength;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(before < 64 * 1024 * 1024, `${before} bytes were taken from the client`);
  socket.destroy();
  await eventually(() => house.door.stats().sandboxSockets === 0, 'upstream connection gone');
});
