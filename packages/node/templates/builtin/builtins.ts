import { CODE_INTERPRETER } from '@aenv/code-interpreter/contract.ts';
import type { BuildableTemplate } from './contract.ts';

/** What `aenv template build` can build, by name. The builders are loaded when they are needed. */
export const BUILTINS: Readonly<Record<string, BuildableTemplate>> = {
  'code-interpreter': {
    // Memory for pandas with data; what is not used costs the host nothing.
    template: { alias: CODE_INTERPRETER.alias, cpuCount: 1, memoryMb: 1024, diskSizeMb: 10 * 1024 },
    async build(options) {
      const { buildCodeInterpreter } = await import('./code-interpreter.ts');
      return buildCodeInterpreter(options);
    },
  },
};
