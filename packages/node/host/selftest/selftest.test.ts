import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Findings } from './findings.ts';
import { HAZARD_NAMES, HAZARDS } from './hazards.ts';
import { hookLogProblem } from './hooks.ts';
import { firstOwnTick, readTicks, sameDraws } from './witness.ts';

const ROOT = join(import.meta.dirname, '../../../..');

test('every hazard has its row in the documentation, and every test that a row names exists', async () => {
  const text = await readFile(join(ROOT, 'docs/restore-contract.md'), 'utf8');
  const rows = text
    .slice(text.indexOf('## Hazards'), text.indexOf('## Hooks'))
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Hazard'));
  const named = rows.map(
    (row) =>
      /`[^`]+`(: `[^`]+`)? \|$/
        .exec(row)?.[0]
        .split('`')
        .filter((_, at) => at % 2 === 1) ?? [],
  );
  assert.deepEqual(named.filter(({ length }) => length === 1).flat(), HAZARD_NAMES);
  assert.deepEqual(
    HAZARDS.map(({ name }) => name),
    HAZARD_NAMES,
  );
  const others = named.filter(({ length }) => length !== 1);
  assert.ok(others.length > 0);
  for (const [file = '', name = ''] of others) {
    const source = await readFile(join(ROOT, file), 'utf8');
    assert.ok(source.includes(`test('${name}'`), `${file} has no test '${name}'`);
  }
});

test('what failed is told with its remedy, and what was not reached is not called good', () => {
  const findings = new Findings();
  findings.check('ping', true, '');
  findings.equal('host name', 'after a resume', 'a', 'b');
  findings.distinct('tokens', 'those', ['x', 'x']);
  const all = new Map(findings.all().map((finding) => [finding.name, finding]));
  assert.equal(all.get('ping')?.status, 'ok');
  assert.deepEqual(all.get('host name')?.detail, ['after a resume: "a", not "b"']);
  assert.ok(all.get('tokens')?.status === 'failed' && all.get('tokens')?.remedy !== undefined);
  assert.equal(all.get('hooks')?.status, 'not checked');
});

test('turns of a common past are told from those of machines that draw the same', () => {
  const past = '1 10 1000 00000000000000aa\n2 20 1010 00000000000000bb\n';
  const [one, two] = ['3 30 1500 00000000000000cc\n4 4', '3 31 1501 00000000000000cc\n'].map((own) =>
    readTicks(past + own),
  );
  assert.ok(one !== undefined && two !== undefined);
  assert.equal(one.size, 3);
  assert.equal(firstOwnTick(one, two)?.monotonic, 30n);
  assert.equal(sameDraws(one, two), 1);
  assert.equal(sameDraws(readTicks(past), two), 0);
  assert.equal(firstOwnTick(readTicks(past), two), undefined);
});

test('the log of the hooks is read in its order', () => {
  const log = [
    'info: hook 10-first ended after 5 ms: exit status 0',
    'error: hook 20-fails ended after 5 ms: exit status 3',
    'info: hook 30-last ended after 5 ms: exit status 0',
  ];
  assert.equal(hookLogProblem(log, false), undefined);
  assert.match(hookLogProblem(log, true) ?? '', /40-hangs/);
  assert.match(hookLogProblem(log.toReversed(), false) ?? '', /10-first/);
});
