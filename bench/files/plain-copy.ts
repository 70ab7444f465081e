import { connect } from 'node:net';

export const SINK_PORT = 9001;
export const SOURCE_PORT = 9002;
export const COPY_FILE = '/tmp/plain-copy';

/**
 * What netcat does, in a guest that has none: one port takes a file and says when it has it, the other one gives it. Each
 * connection is one copy.
 */
export const COPY_PROGRAM = `
import os, socket, threading
def listen(port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('0.0.0.0', port)); s.listen(4); return s
def serve(port, work):
    s = listen(port)
    while True:
        c, _ = s.accept(); work(c); c.close()
def take(c):
    buffer = bytearray(1 << 18)
    with open('${COPY_FILE}', 'wb', buffering=0) as f:
        while (n := c.recv_into(buffer)) > 0: f.write(memoryview(buffer)[:n])
    c.sendall(b'.')
def give(c):
    with open('${COPY_FILE}', 'rb') as f: c.sendfile(f)
if os.fork(): os._exit(0)
os.setsid()
threading.Thread(target=serve, args=(${SINK_PORT}, take)).start()
serve(${SOURCE_PORT}, give)
`;

/** Gives the guest a file. @returns `ms` until the guest has all of it */
export function giveFile(address: string, data: Uint8Array): Promise<number> {
  const begin = performance.now();
  return new Promise((resolve, reject) => {
    const socket = connect(SINK_PORT, address);
    socket.once('error', reject);
    socket.once('data', () => {
      resolve(performance.now() - begin);
      socket.destroy();
    });
    socket.end(data);
  });
}

/** Takes the file. @returns `ms` until all of it is here */
export function takeFile(address: string, size: number): Promise<number> {
  const begin = performance.now();
  return new Promise((resolve, reject) => {
    const socket = connect(SOURCE_PORT, address);
    let received = 0;
    socket.once('error', reject);
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    socket.once('close', () => {
      if (received === size) resolve(performance.now() - begin);
      else reject(new Error(`${received} of ${size} bytes came`));
    });
  });
}
