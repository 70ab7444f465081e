/**
 * The words and signs of a JavaScript source, without what stands in strings, templates, regular expressions and
 * comments. Enough to find words at their place; it judges nothing.
 */

const SPACE = /\s+|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y;
const WORD = /[\p{ID_Continue}$\u200c\u200d]+/uy;
const STRING = /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?/y;
const REGEXP = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[\w$]*/y;
/** Words after which a slash begins a regular expression; after all others it divides. */
const BEFORE_REGEXP = new Set(
  'await case delete do else in instanceof new of return throw typeof void yield'.split(' '),
);

/** @returns `{ start, end }` of each word and sign, in order; those inside of `${}` of templates are among them */
export function* tokens(code) {
  /** for each `{` that is open: whether it belongs to a template */
  const braces = [];
  let at = 0;
  let dividing = false;
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(code);
    return found === null ? undefined : found[0].length;
  };
  const skipTemplate = () => {
    while (at < code.length && code[at] !== '`') {
      if (code[at] === '\\') at++;
      else if (code.startsWith('${', at)) {
        braces.push(true);
        at += 2;
        return;
      }
      at++;
    }
    at++;
    dividing = true;
  };
  while (at < code.length) {
    const start = at;
    const skipped = match(SPACE);
    if (skipped) {
      at += skipped;
      continue;
    }
    const sign = code[at];
    const word = match(WORD);
    if (word) {
      at += word;
      dividing = !BEFORE_REGEXP.has(code.slice(start, at));
      yield { start, end: at };
    } else if (sign === '"' || sign === "'") {
      at += match(STRING);
      dividing = true;
    } else if (sign === '`') {
      at++;
      dividing = false;
      skipTemplate();
    } else if (sign === '}' && braces.pop()) {
      at++;
      skipTemplate();
    } else if (sign === '/' && !dividing && match(REGEXP)) {
      at += match(REGEXP);
      dividing = true;
    } else {
      if (sign === '{') braces.push(false);
      at++;
      dividing = sign === ')' || sign === ']' || sign === '}';
      yield { start, end: at };
    }
  }
}
