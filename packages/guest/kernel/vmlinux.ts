import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { LZ4_LEGACY_MAGIC, unpackLz4Legacy } from './lz4-legacy.ts';

/** Fields of the setup header; see "The Linux/x86 Boot Protocol" of the kernel's documentation. */
const SETUP_SECTS = 0x1f1;
const HEADER_MAGIC = 0x202;
const VERSION = 0x206;
const PAYLOAD_OFFSET = 0x248;
const PAYLOAD_LENGTH = 0x24c;
/** the first version of the protocol that tells where the payload is */
const VERSION_WITH_PAYLOAD = 0x0208;

const MAX_KERNEL_BYTES = 512 * 1024 * 1024;

/**
 * The uncompressed ELF kernel in a bzImage: it boots faster than the image that unpacks itself, above all where the
 * processor is emulated, and Firecracker takes nothing else.
 * @throws AenvError `asset_failed` when the image is damaged or compressed with something unknown
 */
export function extractVmlinux(image: Buffer): Buffer {
  const known =
    image.length > PAYLOAD_LENGTH + 4 && image.toString('latin1', HEADER_MAGIC, HEADER_MAGIC + 4) === 'HdrS';
  if (!known || image.readUInt16LE(VERSION) < VERSION_WITH_PAYLOAD) throw invalid('it has no setup header');
  // 0 stands for 4, for the sake of very old boot loaders
  const setupSectors = image.readUInt8(SETUP_SECTS) || 4;
  const start = (setupSectors + 1) * 512 + image.readUInt32LE(PAYLOAD_OFFSET);
  const end = start + image.readUInt32LE(PAYLOAD_LENGTH);
  if (end > image.length || end - start < 8) throw invalid('its payload is cut off');
  const vmlinux = unpackPayload(image.subarray(start, end));
  // \x7fELF, 64 bit, little-endian
  if (vmlinux.length < 64 || vmlinux.toString('latin1', 0, 6) !== '\x7fELF\x02\x01') throw invalid('it holds no ELF');
  return vmlinux;
}

/** gzip ends with the size itself; to the others the kernel's build appends it (`size_append` in its makefiles). */
function unpackPayload(payload: Buffer): Buffer {
  const size = payload.readUInt32LE(payload.length - 4);
  if (size > MAX_KERNEL_BYTES) throw invalid('its payload has no sensible size');
  const magic = payload.readUInt32LE(0);
  try {
    if (magic === LZ4_LEGACY_MAGIC) return unpackLz4Legacy(payload.subarray(0, -4), size);
    if (magic === 0xfd2fb528) return zstdDecompressSync(payload.subarray(0, -4), { maxOutputLength: size });
    if ((magic & 0xffff) === 0x8b1f) return gunzipSync(payload, { maxOutputLength: MAX_KERNEL_BYTES });
  } catch (error) {
    if (error instanceof AenvError) throw error;
    throw invalid('its payload cannot be unpacked', error);
  }
  throw invalid(`its compression is unknown (magic ${magic.toString(16)})`);
}

function invalid(why: string, cause?: unknown): AenvError {
  return new AenvError('asset_failed', `the kernel image is of no use: ${why}`, { cause });
}
