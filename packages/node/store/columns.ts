import { z } from 'zod';

/** A moment: INTEGER milliseconds since the epoch. */
export const time = z
  .int()
  .min(0)
  .transform((ms) => new Date(ms));

/** A JSON text column of a known shape. */
export function json<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text);
      } catch {
        context.issues.push({ code: 'custom', message: 'not JSON', input: text });
        return z.NEVER;
      }
    })
    .pipe(schema);
}

export const stringMap = z.record(z.string(), z.string());

/** `{[key]: value}`, or nothing when SQL had NULL: optional members are absent rather than undefined. */
export function optional<K extends string, V>(key: K, value: V | null): { [P in K]?: V } {
  // The computed key widens to string, so the type has to be said.
  return value === null ? {} : ({ [key]: value } as { [P in K]: V });
}

/** What a JSON column holds, without the version that it is written with. */
export function withoutVersion<T extends { v: number }>({ v: _version, ...value }: T): Omit<T, 'v'> {
  return value;
}
