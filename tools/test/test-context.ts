/**
 * The runner of Node keeps in mind which test each asynchronous resource belongs to, by a hook that is called, and a weak
 * reference that is held, for each promise: up to two fifths of the processor time of tests that await much. A storage
 * that follows the calls tells the same and costs nothing. To be imported before node:test is loaded for the first time;
 * tests/house/runner.test.ts shows that suites, hooks and errors that nobody caught are still put down to their tests.
 */
import asyncHooks, { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

type Init = NonNullable<asyncHooks.HookCallbacks['init']>;

const running = new AsyncLocalStorage<AsyncResource>();
const known = new WeakSet<AsyncResource>();
let tellOf: Init = () => {};

function isTest(resource: object): boolean {
  for (let type = resource.constructor; type?.name; type = Object.getPrototypeOf(type)) {
    if (type.name === 'Test') return true;
  }
  return false;
}

// What the runner takes from this module when it is loaded: a hook that is told of tests only, and the id of the test.
asyncHooks.createHook = ({ init }) => {
  if (init !== undefined) tellOf = init;
  const hook: asyncHooks.AsyncHook = { enable: () => hook, disable: () => hook };
  return hook;
};
asyncHooks.executionAsyncId = () => running.getStore()?.asyncId() ?? 0;

const runInAsyncScope = AsyncResource.prototype.runInAsyncScope;
AsyncResource.prototype.runInAsyncScope = function <This, Result>(
  this: AsyncResource,
  fn: (this: This, ...args: unknown[]) => Result,
  thisArg?: This,
  ...args: unknown[]
): Result {
  if (!isTest(this)) return Reflect.apply(runInAsyncScope, this, [fn, thisArg, ...args]);
  if (!known.has(this)) {
    known.add(this);
    tellOf(this.asyncId(), 'Test', 0, this);
  }
  const run = () => running.run(this, () => Reflect.apply(fn, thisArg, args));
  return Reflect.apply(runInAsyncScope, this, [run, undefined]);
};
