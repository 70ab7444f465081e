import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { ENVD_PORT, GUEST_LINK } from '@aenv/contracts/guest/link.ts';

// Runs inside a slot's namespace. Each line `asks MS` or `asksAnew MS` on stdin is answered by a line `true` or `false`.

let socket: Socket | undefined;

function open(): Socket {
  socket?.destroy();
  socket = connect(ENVD_PORT, GUEST_LINK.address);
  socket.on('error', () => {});
  return socket;
}

function ask(to: Socket, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), ms);
  to.once('data', () => resolve(true));
  to.once('close', () => resolve(false));
  if (to.destroyed) resolve(false);
  else to.write('GET /health HTTP/1.1\r\nhost: guest\r\n\r\n');
  return promise.finally(() => {
    clearTimeout(timer);
    to.removeAllListeners('data');
  });
}

/** New sockets for as long as there is time: the first SYN to a guest that boots is lost, and is repeated after 1 s. */
async function askAnew(ms: number): Promise<boolean> {
  const deadline = Date.now() + ms;
  while (Date.now() < deadline) {
    if (await ask(open(), Math.min(200, deadline - Date.now()))) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ms] = line.split(' ');
  const answer = command === 'asks' ? await ask(socket ?? open(), Number(ms)) : await askAnew(Number(ms));
  process.stdout.write(`${answer}\n`);
}
socket?.destroy();
