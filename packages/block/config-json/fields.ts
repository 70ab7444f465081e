import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** An object of a JSON document, with the path to it for messages. */
export class Fields {
  readonly #object: Readonly<Record<string, unknown>>;
  readonly #path: string;

  private constructor(object: Record<string, unknown>, path: string) {
    this.#object = object;
    this.#path = path;
  }

  /** @throws AenvError `image_invalid` if the value is no object */
  static of(value: unknown, path: string): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, 'an object');
    return new Fields({ ...value }, path);
  }

  /** Empty is the same as absent, as the reference takes it. */
  text(key: string): string | undefined {
    const value = this.#object[key];
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value !== 'string' || value.length > 4096 || value.includes('\0')) throw this.#wrong(key, 'a text');
    return value;
  }

  flag(key: string): boolean {
    const value = this.#object[key] ?? false;
    if (typeof value !== 'boolean') throw this.#wrong(key, 'true or false');
    return value;
  }

  /** A whole number that is not negative. */
  count(key: string): number | undefined {
    const value = this.#object[key] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw this.#wrong(key, 'a number');
    return value;
  }

  /** @returns undefined if absent */
  object(key: string): Fields | undefined {
    const value = this.#object[key] ?? undefined;
    return value === undefined ? undefined : Fields.of(value, `${this.#path}.${key}`);
  }

  list(key: string, most: number): Fields[] {
    const value = this.#object[key] ?? [];
    if (!Array.isArray(value) || value.length > most) throw this.#wrong(key, `a list of at most ${most}`);
    return value.map((item, i) => Fields.of(item, `${this.#path}.${key}[${i}]`));
  }

  #wrong(key: string, wanted: string): AenvError {
    return wrong(`${this.#path}.${key}`, wanted);
  }
}

function wrong(path: string, wanted: string): AenvError {
  return new AenvError('image_invalid', `the description of a disk is wrong: ${path} is not ${wanted}`);
}
