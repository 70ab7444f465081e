/**
 * The JavaScript kernel. Cells are evaluated by V8's own inspector in REPL mode, as a developer console does: `await`
 * at the top, declarations that may be repeated, the value of the last expression. Requests come as lines of JSON on
 * descriptor 3, events go out as lines on descriptor 4.
 */
import { Session } from 'node:inspector';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { send, sendWord } from './events.mjs';
import { rewriteImports } from './imports.mjs';
import { describeError, display, formsOf } from './show.mjs';

const REQUESTS_FD = 3;
const language = process.argv[2];

const session = new Session();
session.connect();
// Node would wait for it otherwise.
process.on('exit', () => session.disconnect());
/** The number of the cell that runs, 0 for none; the watcher reads it while this thread is busy. */
const current = new Int32Array(new SharedArrayBuffer(4));
/** Gives up the cell that runs while it waits for something. */
let giveUp;
const watcher = new Worker(new URL('./interrupts.mjs', import.meta.url), { workerData: current });
watcher.on('message', (count) => {
  if (count === current[0]) giveUp?.();
});
watcher.unref();
// Ctrl-C reaches all processes of the context, and the commands among them end by it.
process.on('SIGINT', () => {});
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => console.error(error));
}
setUpGlobals();
const helper = await holdHelper();
sendWord('ready');
for await (const line of createInterface({ input: new Socket({ fd: REQUESTS_FD, writable: false }) })) {
  const cell = JSON.parse(line);
  if (cell !== null) await run(cell);
  sendWord(cell === null ? 'ready' : 'end');
}
process.exit(0);

async function run(cell) {
  Object.assign(process.env, cell.set_env);
  for (const name of cell.unset_env) delete process.env[name];
  const before = Object.keys(cell.env_vars).map((name) => [name, process.env[name]]);
  Object.assign(process.env, cell.env_vars);
  Atomics.store(current, 0, cell.count);
  try {
    await evaluate(`${rewriteImports(toJavaScript(cell.code))}\n//# sourceURL=Cell[${cell.count}]`);
  } catch (error) {
    send({ type: 'error', ...describeError(error) });
  } finally {
    Atomics.store(current, 0, 0);
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

function toJavaScript(code) {
  return language === 'typescript' ? stripTypeScriptTypes(code, { mode: 'transform' }) : code;
}

async function evaluate(expression) {
  const interrupted = new Promise((resolve) => {
    giveUp = () => resolve(undefined);
  });
  const answer = await Promise.race([
    interrupted,
    post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true }).catch(() => undefined),
  ]);
  giveUp = undefined;
  if (answer === undefined) {
    send({ type: 'error', name: 'Interrupted', value: 'the cell was interrupted', traceback: '' });
    return;
  }
  const { result, exceptionDetails } = answer;
  const value = await fetchValue(exceptionDetails?.exception ?? result);
  if (exceptionDetails !== undefined) send({ type: 'error', ...describeError(value, exceptionDetails) });
  else if (value !== undefined) send({ type: 'result', ...formsOf(value), is_main_result: true });
}

function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, answer) => (error === null ? resolve(answer) : reject(error)));
  });
}

/** A function of ours as the inspector knows it: what it is called with there, comes out here. */
async function holdHelper() {
  const hidden = Symbol('helper');
  const key = 'aenv.helper';
  globalThis[Symbol.for(key)] = (value) => {
    globalThis[hidden] = value;
  };
  const { result } = await post('Runtime.evaluate', { expression: `globalThis[Symbol.for('${key}')]` });
  delete globalThis[Symbol.for(key)];
  return { objectId: result.objectId, hidden };
}

/** The value behind the inspector's description of it. */
async function fetchValue(remote) {
  if (remote.type === 'undefined') return undefined;
  const { value, unserializableValue, objectId } = remote;
  const argument =
    objectId !== undefined ? { objectId } : unserializableValue !== undefined ? { unserializableValue } : { value };
  await post('Runtime.callFunctionOn', {
    objectId: helper.objectId,
    functionDeclaration: 'function (value) { this(value); }',
    arguments: [argument],
  });
  const found = globalThis[helper.hidden];
  delete globalThis[helper.hidden];
  if (objectId !== undefined) await post('Runtime.releaseObject', { objectId });
  return found;
}

/** What scripts find in the scope of a module. */
function setUpGlobals() {
  const file = join(process.cwd(), 'cell.js');
  const require = createRequire(file);
  const load = (specifier, options) => {
    const isPath = /^\.{0,2}\//.test(specifier);
    const url = isPath ? new URL(specifier, pathToFileURL(join(process.cwd(), '/'))).href : resolve(specifier, require);
    return import(url, options);
  };
  const module = { exports: {}, id: '.', filename: file, paths: require.resolve.paths('x') };
  const globals = {
    require,
    module,
    exports: module.exports,
    __dirname: process.cwd(),
    __filename: file,
    display,
    $import: load,
  };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
}

/** Packages are looked up from the folder of the context, not from that of this file. */
function resolve(specifier, require) {
  if (/^[a-z][a-z0-9+.-]*:/i.test(specifier)) return specifier;
  try {
    const found = require.resolve(specifier);
    return found.startsWith('/') ? pathToFileURL(found).href : found;
  } catch {
    return specifier;
  }
}
