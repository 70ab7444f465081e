import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';

const { rewriteImports } = (await import(new URL('guest/node/imports.mjs', import.meta.url).href)) as {
  rewriteImports(code: string): string;
};

const CASES: readonly (readonly [code: string, expected: string])[] = [
  ["import a from 'm'", "const { default: a } = await $import('m')"],
  ["import a, { b as c, d } from 'm';", "const { default: a, b: c, d } = await $import('m');"],
  ['import * as ns from "m"', 'const ns = await $import("m")'],
  ['import a, * as ns from "m"', 'const ns = await $import("m"), { default: a } = ns'],
  ["import 'm'", "await $import('m')"],
  [
    "import data from './d.json' with { type: 'json' }",
    "const { default: data } = await $import('./d.json', { with: { type: 'json' } })",
  ],
  ['import {\n  a,\n  b\n} from "m"\nc', 'const { a, b } = await $import("m")\n\n\n\nc'],
  ['const m = await import("m")', 'const m = await $import("m")'],
  ['x.import("m"); import.meta', 'x.import("m"); import.meta'],
  [
    `"import 'm'"; \`import "m" \${import("n")}\`; // import "o"`,
    `"import 'm'"; \`import "m" \${$import("n")}\`; // import "o"`,
  ],
  ['const r = /import "m"/; a / import("m") / 2', 'const r = /import "m"/; a / $import("m") / 2'],
  ['const o = { import: 1 }', 'const o = { import: 1 }'],
];
for (const [code, expected] of CASES) {
  test(`${JSON.stringify(code)} becomes what a script may say`, () => {
    assert.equal(rewriteImports(code), expected);
  });
}

test('any text comes to an end, and text without the word stays as it is', () => {
  const pieces = fc.constantFrom(
    'import',
    ' ',
    '"',
    "'",
    '`',
    '${',
    '}',
    '{',
    '/',
    '\\',
    '\n',
    '(',
    ')',
    '.',
    'from',
    '*',
    'a',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      const code = parts.join('');
      const result = rewriteImports(code);
      if (!code.includes('import')) assert.equal(result, code);
    }),
  );
});
