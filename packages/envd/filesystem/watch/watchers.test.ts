import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { EventType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import type { Change } from './changes.ts';
import { eventOf } from './events.ts';
import { type ChangeSource, PolledWatch } from './polled-watch.ts';
import { notWatchable } from './watch-error.ts';
import { Watchers } from './watchers.ts';

/** Gives the changes that it is told to give. */
class FakeSource implements ChangeSource {
  closed = false;
  given = 0;
  readonly #queue: (Change | Error | (() => void))[] = [];
  #wake: (() => void) | undefined;

  push(...items: (Change | Error)[]): void {
    this.#queue.push(...items);
    this.#wake?.();
  }

  mark(reached: () => void): void {
    this.#queue.push(reached);
    this.#wake?.();
  }

  close(): void {
    this.closed = true;
    this.#wake?.();
  }

  async *changes(): AsyncGenerator<readonly Change[]> {
    while (!this.closed) {
      const item = this.#queue.shift();
      if (item instanceof Error) throw item;
      if (typeof item === 'function') item();
      else if (item !== undefined) {
        this.given += 1;
        yield [item];
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

const change = (name: string): Change => ({ name, type: EventType.WRITE });
const polled = (source: ChangeSource, limit?: number) => new PolledWatch(source, eventOf, limit);
const names = async (watch: PolledWatch) => (await watch.take()).map(({ name }) => name);

test('a poll gives what happened before it, once', async () => {
  const source = new FakeSource();
  const watch = polled(source);
  source.push(change('a'), change(''));
  assert.deepEqual(await names(watch), ['a', '.']);
  assert.deepEqual(await names(watch), []);
  source.push(change(Buffer.from('é').toString('latin1')), change('\xff'));
  assert.deepEqual(await names(watch), ['é', '\ufffd']);
  source.close();
});

test('when nobody polls, no more is taken than there is room for, and nothing is lost by that', async () => {
  const source = new FakeSource();
  const watch = polled(source, 3);
  source.push(...['1', '2', '3', '4', '5', '6', '7'].map(change));
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(source.given, 3);
  assert.deepEqual(await names(watch), ['1', '2', '3']);
  assert.deepEqual(await names(watch), ['4', '5', '6']);
  assert.deepEqual(await names(watch), ['7']);
  source.close();
});

test('a poll that waits while the room runs out gives what there is', async () => {
  const source = new FakeSource();
  const watch = polled(source, 2);
  const waiting = names(watch);
  source.push(change('1'), change('2'), change('3'));
  assert.deepEqual(await waiting, [], 'what came after the poll is for the next one');
  assert.deepEqual(await names(watch), ['1', '2']);
  source.close();
});

test('a failure comes after all events before it, and then every time', async () => {
  const source = new FakeSource();
  const watch = polled(source);
  source.push(change('a'), new Error('lost'));
  for (let i = 0; i < 10; i++) await turn();
  assert.deepEqual(await names(watch), ['a']);
  await assert.rejects(watch.take(), /lost/);
  await assert.rejects(watch.take(), /lost/);
  assert.equal(source.closed, true);
});

test('a poll that waits when the watcher is removed ends', async () => {
  const source = new FakeSource();
  const watch = polled(source);
  source.mark = () => {};
  const waiting = watch.take();
  source.close();
  await assert.rejects(waiting, { code: 'watcher_not_found' });
});

test('there are never more than the limit, and what fails to open does not count', async () => {
  const watchers = new Watchers(2);
  const sources = [new FakeSource(), new FakeSource(), new FakeSource()] as const;
  await assert.rejects(
    watchers.take(() => Promise.reject(new Error('no'))),
    /no/,
  );
  await watchers.take(async () => sources[0]);
  await watchers.take(async () => sources[1]);
  await assert.rejects(
    watchers.take(async () => sources[2]),
    { code: 'too_many_watches' },
  );
  watchers.release(sources[0]);
  assert.equal(sources[0].closed, true);
  await watchers.take(async () => sources[2]);
  const id = watchers.keep(polled(sources[2]));
  assert.match(id, /^w[0-9a-f]{20}$/);
  assert.equal(watchers.find(id).source, sources[2]);
  watchers.close();
  assert.ok(sources.every(({ closed }) => closed));
});

test('a kernel that has no instance left is a limit, any other end of the native program a fault', () => {
  assert.equal(notWatchable(24).code, 'too_many_watches');
  assert.equal(notWatchable(128).code, 'internal');
});
