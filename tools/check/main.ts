/** `make check`: every check in turn; the exit code is 1 when one of them fails. All run, so that one run shows all. */
import { spawnSync } from 'node:child_process';
import { staleReferences } from '../docs/references.ts';
import { overlongFiles } from './file-sizes.ts';
import { staleCode } from './generated-code.ts';

const node = process.execPath;

interface Check {
  readonly name: string;
  run(): Promise<string | undefined>;
}

function program(name: string, argv: readonly string[]): Check {
  return {
    name,
    async run() {
      const [file = '', ...args] = argv;
      const result = spawnSync(file, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
      return result.status === 0 ? undefined : `${result.stdout}${result.stderr}${result.error?.message ?? ''}`;
    },
  };
}

const checks: readonly Check[] = [
  program('types', [node, 'node_modules/typescript-native/bin/tsc', '--noEmit']),
  program('lint and format', ['node_modules/.bin/biome', 'check', '--error-on-warnings', '.']),
  program('room order', [
    node,
    'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs',
    '--config',
    '.dependency-cruiser.cjs',
    'packages',
  ]),
  { name: 'file sizes', run: overlongFiles },
  { name: 'generated code is current', run: staleCode },
  { name: 'generated docs are current', run: staleReferences },
];

let failed = 0;
for (const check of checks) {
  const start = performance.now();
  const problem = await check.run();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${problem === undefined ? 'ok    ' : 'FAILED'}  ${check.name} (${seconds} s)`);
  if (problem !== undefined) {
    failed++;
    console.log(problem);
  }
}
console.log(failed === 0 ? 'check: all good' : `check: ${failed} of ${checks.length} failed`);
process.exitCode = failed === 0 ? 0 : 1;
