/** What QEMU sends over QMP, see docs/interop/qmp-spec in QEMU's sources. */
export type QmpMessage =
  | { readonly kind: 'greeting' }
  | { readonly kind: 'return'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number | undefined; readonly description: string }
  | { readonly kind: 'event'; readonly name: string; readonly data: Readonly<Record<string, unknown>> };

/** One line of QMP, or undefined when it is none. */
export function parseQmpMessage(line: string): QmpMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const id = typeof value.id === 'number' ? value.id : undefined;
  if ('QMP' in value) return { kind: 'greeting' };
  if ('return' in value) return id === undefined ? undefined : { kind: 'return', id, value: value.return };
  if ('error' in value) {
    const error = value.error;
    const description = isRecord(error) && typeof error.desc === 'string' ? error.desc : 'unknown error';
    return { kind: 'error', id, description };
  }
  if (typeof value.event === 'string') {
    return { kind: 'event', name: value.event, data: isRecord(value.data) ? value.data : {} };
  }
  return undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
