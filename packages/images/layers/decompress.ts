import { createGunzip, createZstdDecompress } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ByteReader } from '../tar/byte-reader.ts';

const GZIP = Buffer.from([0x1f, 0x8b]);
/** Bytes that are unpacked in one go: each costs a switch of threads. */
const CHUNK = { chunkSize: 512 * 1024 };
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * The uncompressed bytes of a layer. The compression is told by the first bytes, since registries are known to carry
 * wrong media types. Several gzip members or zstd frames in a row are one stream; anything else behind them is refused.
 * @throws AenvError `image_invalid`; what the source throws comes through
 */
export async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const input = new ByteReader(source);
  try {
    const head = await input.upTo(4);
    const rest = withHead(head, input);
    if (head.subarray(0, 2).equals(GZIP)) yield* through(createGunzip(CHUNK), rest, 'gzip');
    else if (head.equals(ZSTD)) yield* through(createZstdDecompress(CHUNK), rest, 'zstd');
    else yield* rest;
  } finally {
    await input.close();
  }
}

async function* withHead(head: Buffer, input: ByteReader): AsyncGenerator<Buffer> {
  for (let part = head; part.length > 0; part = await input.some(64 * 1024)) yield part;
}

type Decoder = ReturnType<typeof createGunzip> | ReturnType<typeof createZstdDecompress>;

async function* through(decoder: Decoder, source: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  let fed = 0;
  let sourceError: unknown;
  const feeding = (async () => {
    try {
      for await (const part of source) {
        fed += part.length;
        if (decoder.destroyed) return;
        if (!decoder.write(part)) await drained(decoder);
      }
      decoder.end();
    } catch (error) {
      sourceError = error;
      decoder.destroy();
    }
  })();
  try {
    for await (const part of decoder as AsyncIterable<Buffer>) yield part;
    await feeding;
  } catch (error) {
    if (sourceError !== undefined) throw sourceError;
    throw new AenvError('image_invalid', `the layer is not whole ${name} data: ${String(error)}`, { cause: error });
  } finally {
    decoder.destroy();
  }
  if (sourceError !== undefined) throw sourceError;
  // zlib ends quietly at the first byte that begins no further member.
  if (decoder.bytesWritten !== fed) throw new AenvError('image_invalid', `garbage after the ${name} data of the layer`);
}

/** Resolves when the decoder takes more, or is done for. */
function drained(decoder: Decoder): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => {
    decoder.off('drain', done);
    decoder.off('close', done);
    decoder.off('end', done);
    resolve();
  };
  decoder.on('drain', done);
  decoder.on('close', done);
  decoder.on('end', done);
  return promise;
}
