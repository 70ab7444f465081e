import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogQuery } from './contract.ts';
import { EventLog } from './event-log.ts';

const all: LogQuery = { direction: 'forward', limit: 1000 };
const add = (log: EventLog, at: number, message: string, level: 'debug' | 'info' | 'warn' = 'info') =>
  log.add({ at, level, logger: 'process', message });
const messages = (log: EventLog, query: Partial<LogQuery> = {}) =>
  log.read({ ...all, ...query }).map((entry) => entry.message);

test('a reader who goes on behind the last moment misses nothing, also of what came late', () => {
  const log = new EventLog();
  add(log, 1000, 'a');
  add(log, 1000, 'b');
  const seen = log.read(all);
  assert.deepEqual(messages(log), ['a', 'b']);
  add(log, 500, 'late');
  const next = log.read({ ...all, cursor: (seen.at(-1)?.at ?? 0) + 1 });
  assert.deepEqual(
    next.map((entry) => entry.message),
    ['late'],
  );
});

test('direction, limit, level and search go together', () => {
  const log = new EventLog();
  add(log, 1, 'One', 'debug');
  add(log, 2, 'Two');
  add(log, 3, 'Three', 'warn');
  assert.deepEqual(messages(log, { direction: 'backward', limit: 2 }), ['Three', 'Two']);
  assert.deepEqual(messages(log, { direction: 'backward', cursor: 2 }), ['Two', 'One']);
  assert.deepEqual(messages(log, { cursor: 2, limit: 1 }), ['Two']);
  assert.deepEqual(messages(log, { level: 'warn' }), ['Three']);
  assert.deepEqual(messages(log, { search: 'T' }), ['Two', 'Three']);
  assert.deepEqual(messages(log, { limit: 0 }), []);
});

test('however much is written, what is kept is bounded and the newest', () => {
  const many = new EventLog();
  for (let at = 1; at <= 1500; at++) add(many, at, String(at));
  assert.deepEqual([messages(many).length, messages(many).at(-1)], [1000, '1500']);
  const large = new EventLog();
  for (let at = 1; at <= 1000; at++) add(large, at, 'x'.repeat(10_000));
  const kept = messages(large);
  assert.ok(kept.length >= 100 && kept.join('').length <= 256 * 1024, `${kept.length} entries`);
});
