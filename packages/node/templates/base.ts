import type { BuiltinTemplate } from './register.ts';

/** The template that is always there. */
export const BASE: BuiltinTemplate = { alias: 'base', cpuCount: 1, memoryMb: 512, diskSizeMb: 10 * 1024 };
