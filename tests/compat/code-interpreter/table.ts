import * as current from '@e2b/code-interpreter';
import * as ci20 from 'code-interpreter-2-0';
import type { Column, Table } from '../support/scenario.ts';
import { type Interpreter, InterpreterBed } from './bed.ts';
import { contexts, python } from './scenarios.ts';

const VERSIONS: readonly (readonly [version: string, sdk: Interpreter])[] = [
  ['2.0.1', ci20 as unknown as Interpreter],
  ['2.8.0', current],
];

export function interpreterTable(): Table<InterpreterBed> {
  const columns = VERSIONS.map(
    ([version, sdk]): Column<InterpreterBed> => ({
      title: version,
      version,
      always: version === VERSIONS.at(-1)?.[0],
      open: (host) => InterpreterBed.open(sdk, host),
      close: (bed) => bed.close(),
    }),
  );
  return {
    client: '@e2b/code-interpreter',
    intro: 'The JavaScript package, from npm, with the template of `aenv template build code-interpreter`.',
    groups: [python, contexts],
    columns,
  };
}
