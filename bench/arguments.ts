import { parseArgs } from 'node:util';

export interface BenchArguments {
  /** measurements to make, all when empty */
  readonly names: readonly string[];
  readonly quick: boolean;
  readonly list: boolean;
}

/** @throws Error naming what is not understood */
export function parseArguments(argv: readonly string[], known: readonly string[]): BenchArguments {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false }, list: { type: 'boolean', default: false } },
  });
  for (const name of positionals) {
    if (!known.includes(name)) throw new Error(`there is no measurement '${name}'; there are: ${known.join(', ')}`);
  }
  return { names: positionals, quick: values.quick, list: values.list };
}
