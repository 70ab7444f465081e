import type { ServerResponse } from 'node:http';

/** Writes a piece of an answer and returns when the client takes more; false when it is gone. */
export async function writeChunk(response: ServerResponse, chunk: Uint8Array): Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(chunk)) return true;
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
  return !response.destroyed;
}
