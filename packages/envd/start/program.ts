import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';

/** A bundled program, not run yet. */
export interface Program {
  readonly script: Script;
  /** Runs it. @returns what it exports */
  run(): Readonly<Record<string, unknown>>;
}

/** Built-in modules that envd can listen without, and that bring much along. */
const LATE = new Set(['node:fs/promises']);

/**
 * Loads a bundle that requires built-in modules only.
 * @param compiled what `Script.createCachedData` gave for the same bundle; it is not used when another engine made it,
 *   as `script.cachedDataRejected` says
 */
export function loadProgram(bundle: string, compiled?: Buffer): Program {
  // The bundler writes ASCII; read as such, the engine keeps it at one byte for each character, without decoding.
  const source = `(function (exports, require, module) {${readFileSync(bundle, 'latin1')}\n})`;
  const script = new Script(source, { filename: bundle, ...(compiled === undefined ? {} : { cachedData: compiled }) });
  return {
    script,
    run() {
      const module = { exports: {} };
      script.runInThisContext()(module.exports, requireBuiltin, module);
      return module.exports;
    },
  };
}

function requireBuiltin(name: string): unknown {
  if (!LATE.has(name)) return builtin(name);
  let loaded: object | undefined;
  return new Proxy(
    {},
    {
      get(_, key) {
        loaded ??= builtin(name);
        return Reflect.get(loaded, key);
      },
    },
  );
}

function builtin(name: string): object {
  const module = process.getBuiltinModule(name);
  if (module === undefined) throw new Error(`there is no built-in module ${name}`);
  return module;
}
