import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCell, renderPage, type TableShape } from './markdown.ts';
import { Results } from './results.ts';
import { applies, compareVersions } from './scenario.ts';

const works = async () => {};
const fails = async () => {
  throw new Error('broken');
};
const cell = (scenario: string, column = '2.0') => ({ client: 'c', column, scenario });
const table: TableShape = {
  client: 'c',
  intro: 'A client.',
  groups: [{ title: 'Rows', scenarios: [{ name: 'a' }, { name: 'b' }, { name: 'e' }] }],
  columns: [{ title: '1.0' }, { title: '2.0' }],
};

test('a new failure fails, a known one does not, and a known one that works fails', async () => {
  const results = new Results([
    { ...cell('a'), reason: 'the reason' },
    { ...cell('b'), reason: 'another' },
    { ...cell('renamed'), reason: 'a third' },
  ]);
  await results.attempt(cell('a'), fails);
  await assert.rejects(results.attempt(cell('b'), works), /take it off the list .*another/);
  await assert.rejects(results.attempt(cell('e'), fails), /broken/);
  assert.deepEqual(
    ['a', 'b', 'e'].map((name) => results.of(cell(name))?.kind),
    ['known', 'works', 'fails'],
  );
  assert.deepEqual(results.unmet(), ['c 2.0: renamed']);
});

test('the page has a cell for each scenario and client, reasons below, and keeps what was not run', async () => {
  const first = new Results([{ ...cell('a'), reason: 'the reason' }]);
  await first.attempt(cell('a'), fails);
  await first.attempt(cell('b'), works);
  first.markAbsent(cell('e'));
  const page = renderPage([table], first, '');
  assert.match(page, /\n\| a \| {2}\| no \(1\) \|\n\| b \| {2}\| yes \|\n\| e \| {2}\| - \|\n\n1\. the reason\n$/);
  assert.deepEqual(
    ['a', 'b', 'e', 'f'].map((name) => readCell(page, 'c', '2.0', name)),
    ['no', 'yes', '-', undefined],
  );
  const second = new Results([{ ...cell('a'), reason: 'the reason' }]);
  await second.attempt(cell('a', '1.0'), works);
  await assert.rejects(second.attempt(cell('b', '1.0'), fails));
  const next = renderPage([table], second, page);
  assert.match(
    next,
    /\n\| a \| yes \| no \(1\) \|\n\| b \| \*\*fails\*\* \| yes \|\n\| e \| {2}\| - \|\n\n1\. the reason\n$/,
  );
});

test('a scenario is one of the versions from its first on', () => {
  assert.ok(applies({}, '2.0.1'));
  assert.ok(applies({ since: '2.23.0' }, '2.45.0'));
  assert.ok(applies({ since: '2.45.0' }, '2.45.0'));
  assert.ok(!applies({ since: '2.45.0' }, '2.23.0'));
  assert.ok(compareVersions('2.9.0', '2.51.0') < 0);
});
