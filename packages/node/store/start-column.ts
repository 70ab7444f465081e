import { z } from 'zod';
import type { StartState } from '../templates/contract.ts';
import { stringMap } from './columns.ts';

const Stored = z.object({
  v: z.literal(1),
  envVars: stringMap,
  user: z.string(),
  workdir: z.string(),
  startCommand: z.object({ cmd: z.string(), user: z.string() }).optional(),
  ready: z
    .discriminatedUnion('kind', [
      z.object({ kind: z.literal('command'), cmd: z.string(), user: z.string() }),
      z.object({ kind: z.literal('http'), port: z.int(), path: z.string(), warmPath: z.string().optional() }),
    ])
    .optional(),
});

/** What a guest is told and begins with, version 1 of the JSON column. */
export const StartColumn = Stored.transform(({ v: _version, startCommand, ready, ...start }): StartState => {
  return {
    ...start,
    ...(startCommand === undefined ? {} : { startCommand }),
    ...(ready === undefined ? {} : { ready }),
  };
});
