/**
 * The last lines of what a guest or its VMM printed, without empty ones and with printable ASCII only: escape sequences
 * of a hostile guest must not reach a terminal or a log.
 */
export function printableTail(data: Uint8Array, count: number): string {
  return Buffer.from(data)
    .toString('latin1')
    .split(/[\r\n]+/)
    .map((line) =>
      line
        .replace(/[^\x20-\x7e]/g, '')
        .trim()
        .slice(-300),
    )
    .filter((line) => line !== '')
    .slice(-count)
    .join('\n');
}
