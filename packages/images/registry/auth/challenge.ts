/** One challenge of a WWW-Authenticate header (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** lower case */
  readonly scheme: string;
  /** names in lower case */
  readonly params: ReadonlyMap<string, string>;
}

const MAX_HEADER = 8 * 1024;
const TOKEN = /[\w!#$%&'*+.^`|~-]+/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;

/**
 * All challenges of the values of a header. What cannot be read ends the value there, so that a strange challenge does
 * not hide those before it.
 */
export function parseChallenges(values: readonly string[]): Challenge[] {
  return values.flatMap((value) => (value.length > MAX_HEADER ? [] : parseValue(value)));
}

function parseValue(value: string): Challenge[] {
  const found: { scheme: string; params: Map<string, string> }[] = [];
  const reader = new Reader(value);
  for (;;) {
    reader.skip(/[\s,]*/y);
    const word = reader.take(TOKEN);
    if (word === undefined) return found;
    const equals = reader.take(/\s*=\s*/y);
    const current = found.at(-1);
    if (equals === undefined || current === undefined) {
      if (equals !== undefined) return found;
      found.push({ scheme: word.toLowerCase(), params: new Map() });
      // The other form of a challenge is one opaque word (token68), which has no comma and no quotes.
      reader.skip(/[ \t]+[\w.~+/-]+=*(?=\s*(?:,|$))/y);
      continue;
    }
    const text = reader.takeQuoted() ?? reader.take(TOKEN);
    if (text === undefined) return found;
    if (!current.params.has(word.toLowerCase())) current.params.set(word.toLowerCase(), text);
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  take(pattern: RegExp): string | undefined {
    return this.#match(pattern)?.[0];
  }

  skip(pattern: RegExp): void {
    this.#match(pattern);
  }

  takeQuoted(): string | undefined {
    return this.#match(QUOTED)?.[1]?.replaceAll(/\\(.)/g, '$1');
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }
}
