import { Socket } from 'node:net';

/** What a socket is to Node itself; it has no name that is documented. */
interface Handled {
  _handle?: unknown;
}

/**
 * A connection that was accepted, paused, as a socket that reads into a buffer which may belong to others as well. Else Node
 * makes one of 64 KiB for each read, which is a quarter of all work where many small writes are under way. Node has this for
 * connections that are made (`onread` of net.connect), not for those that are accepted: hence a second socket, same handle.
 * @param accepted is done for
 * @param receive gets a view of `buffer`, which is valid until it returns
 */
export function readInto(accepted: Socket, buffer: Buffer, receive: (chunk: Buffer) => void): Socket {
  const from = accepted as Handled;
  const options = {
    handle: from._handle,
    onread: {
      buffer,
      callback(bytes: number) {
        receive(buffer.subarray(0, bytes));
        return true;
      },
    },
  };
  from._handle = null;
  accepted.destroy();
  const socket = new Socket(options);
  socket.resume();
  return socket;
}
