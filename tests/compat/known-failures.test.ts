import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { cellName, KNOWN_FAILURES_FILE, readKnownFailures } from './support/known-failures.ts';

const git = (...args: string[]) => spawnSync('git', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });

test('each known failure is listed once, with its reason', () => {
  const known = readKnownFailures();
  assert.equal(new Set(known.map(cellName)).size, known.length);
  for (const failure of known) assert.ok(failure.reason.length > 20, `${cellName(failure)}: say why`);
});

test('the list of known failures only ever got shorter, and the copy at hand is no longer than the committed one', (t) => {
  const log = git('log', '--format=%H', '--', KNOWN_FAILURES_FILE);
  const commits = log.status === 0 ? log.stdout.split('\n').filter((line) => line !== '') : [];
  if (commits.length === 0) return t.skip('no history here');
  let later = new Set(readKnownFailures(readFileSync(KNOWN_FAILURES_FILE, 'utf8')).map(cellName));
  for (const commit of commits) {
    const { stdout } = git('show', `${commit}:${KNOWN_FAILURES_FILE}`);
    const earlier = new Set(readKnownFailures(stdout).map(cellName));
    assert.deepEqual(
      [...later].filter((name) => !earlier.has(name)),
      [],
      `new since ${commit}`,
    );
    later = earlier;
  }
});
