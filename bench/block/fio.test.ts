import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFio } from './fio.ts';

const report = (job: object) =>
  `nbd: some words\n${JSON.stringify({ 'fio version': 'fio-3.33', jobs: [job] }, null, 2)}\n`;

test('the rate of the direction that was asked for is read', () => {
  const text = report({ error: 0, read: { iops: 1234.5 }, write: { iops: 0 } });
  assert.equal(parseFio(text, 'read'), 1234.5);
  assert.throws(() => parseFio(text, 'write'), /not done its work/);
});

test('a run with an error is none', () => {
  assert.throws(() => parseFio(report({ error: 5, read: { iops: 10 } }), 'read'), /not done its work/);
});
