import { filterHeaders, hopByHop, type RawHeaders } from './raw-headers.ts';

/**
 * The headers of an answer as the client gets them: all but the hop-by-hop ones.
 * @param keepTrailerField whether the body will be chunked, so that announced trailers can come
 * @param keepUpgradeField for 426 and 101, where Upgrade is what the answer is about
 */
export function relayedHeaders(rawHeaders: RawHeaders, keepTrailerField: boolean, keepUpgradeField: boolean): string[] {
  const ending = hopByHop(rawHeaders);
  if (!keepTrailerField) ending.add('trailer');
  if (keepUpgradeField) ending.delete('upgrade');
  return filterHeaders(rawHeaders, (name) => !ending.has(name));
}
