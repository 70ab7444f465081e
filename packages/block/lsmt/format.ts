/**
 * Constants of the LSMT layer format (containerd/overlaybd, `src/overlaybd/lsmt`). All integers are little-endian,
 * addresses are sectors of 512 bytes.
 */

/** Bytes of a header and of a trailer. */
export const HEADER_SIZE = 4096;
export const SEGMENT_SIZE = 16;

/** First sector of a blob that can have data: what is before it is the header. */
export const FIRST_DATA_SECTOR = HEADER_SIZE / 512;

/** Longest segment, in sectors: 14 bits. */
export const MAX_SEGMENT_LENGTH = 16_383;
/** Longest segment that a writer makes of data, in sectors: the reference splits writes at 4 MiB. */
export const MAX_WRITE_LENGTH = 8192;

/** Committed indexes are padded to a multiple of this. */
export const INDEX_ALIGNMENT = 256;

/** The reference reads no sealed index that is longer (padding included). */
export const MAX_EXCHANGED_ENTRIES = 1_000_000;
/** Bound of an index that was sealed on this host, of what one read(2) brings: 512 GiB in scattered blocks of 4 KiB. */
export const MAX_LOCAL_ENTRIES = 2 ** 27 - 1;
/** The reference's bound of a log of a writable layer. */
export const MAX_LOG_ENTRIES = 128_000_000;
export const MAX_LAYERS = 255;

/** Sectors of the largest disk and of the largest blob: addresses are kept in 32 bits (2 TiB). */
export const MAX_SECTORS = 2 ** 32;

export const NULL_UUID = '00000000-0000-0000-0000-000000000000';
