import { z } from 'zod';
import { ConfigSchema } from './schema.ts';
import { type KeyMeta, keyMeta } from './values.ts';

export interface ConfigKey extends KeyMeta {
  /** as in TOML, with dots: `limits.max_sandboxes` */
  readonly name: string;
  /** members that lead to it in the schema */
  readonly path: readonly string[];
  readonly env: string;
  /** as TOML spells it; absent when there is none */
  readonly fallback?: unknown;
  /** the allowed words, where there are only some */
  readonly choices?: readonly string[];
}

/** All keys in the order of the schema. */
export function configKeys(): readonly ConfigKey[] {
  return collect(ConfigSchema, []);
}

function collect(schema: z.core.$ZodType, path: readonly string[]): ConfigKey[] {
  const meta = keyMeta.get(schema);
  const inner = unwrap(schema);
  if (meta === undefined) {
    if (!(inner instanceof z.ZodObject)) throw new Error(`configuration schema: ${path.join('.')} has no description`);
    return Object.entries(inner.shape).flatMap(([member, child]) => collect(child, [...path, member]));
  }
  const name = path.map(snakeCase).join('.');
  return [
    {
      ...meta,
      name,
      path,
      env: meta.env ?? `AENV_${name.replaceAll('.', '_').toUpperCase()}`,
      ...(schema instanceof z.ZodPrefault ? { fallback: schema.def.defaultValue } : {}),
      ...(inner instanceof z.ZodEnum ? { choices: inner.options.map(String) } : {}),
    },
  ];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional ? unwrap(schema.def.innerType) : schema;
}

export function snakeCase(member: string): string {
  return member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
