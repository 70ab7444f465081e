import { INIT_STEPS } from '@aenv/contracts/envd/host-api.ts';
import { HOOK_OUTPUT_MAX, HOOKS_MAX, type HookResult } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { type EnvdAnswer, jsonOf } from './request.ts';

// A guest is hostile: what it sends is bounded in every member.
const MAX_NAME = 255;
const MAX_STATUS = 500;

const Frozen = z.object({ frozen: z.boolean() });
const HookCount = z.object({ hooks: z.int().min(0).max(HOOKS_MAX) });
const Hooks = z.object({
  hooks: z
    .array(
      z.object({
        name: z.string().max(MAX_NAME),
        status: z.string().transform((text) => text.slice(0, MAX_STATUS)),
        ok: z.boolean(),
        ms: z.number().min(0),
        output: z.string().max(HOOK_OUTPUT_MAX),
      }),
    )
    .max(HOOKS_MAX),
});

export function frozenOf(answer: EnvdAnswer): boolean {
  return read(answer, Frozen).frozen;
}

/** An envd that was captured before there were hooks has none, and nothing of it stands still. */
export function hookCountOf(answer: EnvdAnswer): number {
  return answer.status === 404 ? 0 : read(answer, HookCount).hooks;
}

/** Of a guest that was let go on by its first call. @throws AenvError `restore_failed` for what is no such number */
export function hookHeaderOf(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  const count = typeof header === 'string' && /^\d{1,3}$/.test(header) ? Number(header) : Number.NaN;
  if (!(count <= HOOKS_MAX)) throw new AenvError('restore_failed', 'envd gave no answer that makes sense');
  return count;
}

export function hookResultsOf(answer: EnvdAnswer): readonly HookResult[] {
  return read(answer, Hooks).hooks;
}

/** The known steps of a Server-Timing header (`time;dur=1.5, entropy;dur=2`), in `ms`; what cannot be read is left out. */
export function stepsOf(header: string | string[] | undefined): Readonly<Record<string, number>> {
  const steps: Record<string, number> = {};
  if (typeof header !== 'string') return steps;
  for (const part of header.split(',', INIT_STEPS.length)) {
    const [, name, ms] = /^\s*([a-z]+);dur=(\d{1,7}(?:\.\d{1,3})?)\s*$/.exec(part) ?? [];
    const step = INIT_STEPS.find((known) => known === name);
    if (step !== undefined) steps[step] = Number(ms);
  }
  return steps;
}

function read<T extends z.ZodType>({ status, text }: EnvdAnswer, schema: T): z.output<T> {
  if (status !== 200) throw new AenvError('restore_failed', `envd answered ${status}: ${text.slice(0, MAX_STATUS)}`);
  const parsed = schema.safeParse(jsonOf(text));
  if (!parsed.success)
    throw new AenvError('restore_failed', 'envd gave no answer that makes sense', { cause: parsed.error });
  return parsed.data;
}
