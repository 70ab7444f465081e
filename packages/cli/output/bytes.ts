/** `512 B`, `1.5 MB`: powers of 1000. */
export function bytes(count: number): string {
  if (count < 1000) return `${Math.round(count)} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  if (count < 1e9) return `${(count / 1e6).toFixed(1)} MB`;
  return `${(count / 1e9).toFixed(2)} GB`;
}
