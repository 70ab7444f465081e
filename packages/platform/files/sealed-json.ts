import { createHash } from 'node:crypto';

/** The text of a small record that says itself whether it is as it was written. */
export function sealJson(record: Readonly<Record<string, unknown>>): string {
  const checksum = createHash('sha256').update(JSON.stringify(record)).digest('hex');
  return `${JSON.stringify({ ...record, checksum })}\n`;
}

/** @returns the record; undefined when a single byte is not as `sealJson` gave it */
export function unsealJson(text: string): Readonly<Record<string, unknown>> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('checksum' in value)) return undefined;
  const { checksum: _, ...record } = value;
  return sealJson(record) === text ? record : undefined;
}
