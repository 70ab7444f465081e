/** A file of the cache holds so many bytes of a blob: what is evicted at once. */
export const CHUNK = 4 * 1024 * 1024;
/** What is fetched, checked and marked as there. */
export const PART = 64 * 1024;
export const PARTS_PER_CHUNK = CHUNK / PART;
/** The longest single request. */
export const MAX_RUN_PARTS = 16;
/** The largest blob that is cached; it bounds the index in memory. */
export const MAX_BLOB = 2 ** 36;

/** Bytes of a part, which are fewer for the last one. */
export function partLength(part: number, size: number): number {
  return Math.min(PART, size - part * PART);
}

/** First and last part of a range that is not empty. */
export function partsOf(offset: number, length: number): { readonly first: number; readonly last: number } {
  return { first: Math.floor(offset / PART), last: Math.floor((offset + length - 1) / PART) };
}
