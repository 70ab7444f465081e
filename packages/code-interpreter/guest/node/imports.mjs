/**
 * Cells are scripts, and scripts cannot import: declarations become calls, `import a, { b as c } from 'm'` ->
 * `const { default: a, b: c } = await $import('m')`, and so do calls of `import`, which the inspector's scripts lack.
 */
import { tokens } from './tokens.mjs';

export function rewriteImports(code) {
  if (!/\bimport\b/.test(code)) return code;
  let result = '';
  let done = 0;
  let previous;
  for (const token of tokens(code)) {
    if (token.start >= done && code.slice(token.start, token.end) === 'import' && previous !== '.') {
      const replaced = rewriteAt(code, token.start);
      if (replaced !== undefined) {
        result += code.slice(done, token.start) + replaced.text;
        done = replaced.end;
      }
    }
    previous = code.slice(token.start, token.end);
  }
  return result + code.slice(done);
}

const BLANK = String.raw`(?:\s|/\*[\s\S]*?\*/|//[^\n]*\n)*`;
const STRING = String.raw`("[^"\n]*"|'[^'\n]*')`;
const ATTRIBUTES = String.raw`(?:${BLANK}with${BLANK}(\{[^}]*\}))?`;
const BARE = new RegExp(`import${BLANK}${STRING}${ATTRIBUTES}`, 'y');
const FROM = new RegExp(String.raw`import\b([^'"();=]*?)\bfrom${BLANK}${STRING}${ATTRIBUTES}`, 'y');
const CALL = new RegExp(`import(?=${BLANK}\\()`, 'y');

/** @returns what stands in place of the import at that position, and where it ends; undefined when it is none */
function rewriteAt(code, start) {
  if (matchAt(CALL, code, start) !== undefined) return { text: '$import', end: start + 'import'.length };
  const bare = matchAt(BARE, code, start);
  if (bare !== undefined) return { text: `await ${call(bare[1], bare[2])}`, end: start + bare[0].length };
  const from = matchAt(FROM, code, start);
  const declaration = from === undefined ? undefined : declare(from[1], `await ${call(from[2], from[3])}`);
  if (declaration === undefined) return undefined;
  // Lines stay where they are, for errors that name them.
  const lines = from[0].split('\n').length - 1;
  return { text: declaration + '\n'.repeat(lines), end: start + from[0].length };
}

function matchAt(pattern, code, start) {
  pattern.lastIndex = start;
  return pattern.exec(code) ?? undefined;
}

function call(specifier, attributes) {
  return attributes === undefined ? `$import(${specifier})` : `$import(${specifier}, { with: ${attributes} })`;
}

/** @returns the declaration of what an import's clause binds; undefined when it is no such clause */
function declare(clause, module) {
  const text = clause.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*\n/g, ' ').trim();
  const [, first, star, named] = /^(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?$/.exec(text) ?? [];
  if (star !== undefined) {
    return `const ${star} = ${module}${first === undefined ? '' : `, { default: ${first} } = ${star}`}`;
  }
  if (first === undefined && named === undefined) return undefined;
  const parts = first === undefined ? [] : [`default: ${first}`];
  for (const item of (named ?? '').split(',')) {
    const [name, local] = item.trim().split(/\s+as\s+/);
    if (name !== '') parts.push(local === undefined ? name : `${name}: ${local}`);
  }
  return `const { ${parts.join(', ')} } = ${module}`;
}
