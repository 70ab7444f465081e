import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GUEST_EVENTS_MAX, type GuestReport, HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import type { RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { TEST_SECRET, testEnvd } from '../testing/envd.ts';
import { run } from '../testing/rpc-client.ts';
import { Journal } from './journal.ts';

const command = { cmd: '/bin/bash', args: ['-l', '-c', 'echo secret'] };

test('a cursor gives what came after it, with its age and without any argument', () => {
  let now = 1000;
  const journal = new Journal(() => now);
  journal.started(7, command);
  const first = journal.since('');
  assert.deepEqual(first.events, [{ kind: 'start', pid: 7, program: '/bin/bash', args: 3, age: 0 }]);
  journal.ended(7, command, 'exit status 0');
  now += 250.4;
  const second = journal.since(first.cursor);
  const end = { kind: 'end', pid: 7, program: '/bin/bash', args: 3, status: 'exit status 0', age: 250 };
  assert.deepEqual([second.lost, second.events], [0, [end]]);
  assert.deepEqual(journal.since(second.cursor).events, []);
  assert.equal(journal.since('other-run:2').events.length, 2);
  assert.equal(journal.since(`${second.cursor}999`).events.length, 0);
});

test('what nobody reads is forgotten, and told as lost', () => {
  const journal = new Journal();
  const { cursor } = journal.since('');
  for (let pid = 0; pid < GUEST_EVENTS_MAX + 5; pid++) journal.started(pid, command);
  const report = journal.since(cursor);
  assert.deepEqual([report.lost, report.events.length, report.events[0]?.pid], [5, GUEST_EVENTS_MAX, 5]);
});

test('a guest that goes on as another sandbox begins anew, one that goes on after a pause does not', async () => {
  await using envd = await testEnvd();
  await envd.init({ accessToken: 'token' });
  let cursor = '';
  const events = async () => {
    const headers = { [HOST_SECRET_HEADER]: TEST_SECRET };
    const report = (await (await fetch(`${envd.url}/observe?after=${cursor}`, { headers })).json()) as GuestReport;
    cursor = report.cursor;
    return [report.lost, report.events.length];
  };
  const goOn = async (event: RestoreEvent, seed: string) => {
    const answer = await envd.init({ event, letGo: true, seed: Buffer.from(seed.repeat(32)).toString('base64') });
    assert.equal(answer.status, 204);
  };
  await run(envd.url, '/bin/true', [], {}, { token: 'token' });
  await goOn('resume', 'a');
  assert.deepEqual(await events(), [0, 2]);
  await run(envd.url, '/bin/true', [], {}, { token: 'token' });
  await goOn('create', 'b');
  assert.deepEqual(await events(), [0, 0]);
  await run(envd.url, '/bin/true', [], {}, { token: 'token' });
  // The same call once more, where its answer was lost: programs run by now.
  await goOn('create', 'b');
  assert.deepEqual(await events(), [0, 2]);
});

test('the host observes load and processes; nobody else may', async () => {
  await using envd = await testEnvd();
  const observe = (secret: string, token = '') =>
    fetch(`${envd.url}/observe`, { headers: { [HOST_SECRET_HEADER]: secret, 'x-access-token': token } });
  assert.equal((await observe(TEST_SECRET)).status, 401, 'before it is known who the host is');
  await envd.init({ accessToken: 'token' });
  await run(envd.url, '/bin/sh', ['-c', 'exit 3'], {}, { token: 'token' });
  for (const [secret, token] of [
    ['', 'token'],
    ['b'.repeat(64), 'token'],
  ] as const) {
    assert.equal((await observe(secret, token)).status, 401);
  }
  const answer = await observe(TEST_SECRET);
  const report = (await answer.json()) as { metrics: Record<string, number>; events: Record<string, unknown>[] };
  assert.ok(Number(report.metrics.mem_total) > 0);
  assert.deepEqual(
    report.events.map(({ kind, program, args, status }) => [kind, program, args, status]),
    [
      ['start', '/bin/sh', 2, undefined],
      ['end', '/bin/sh', 2, 'exit status 3'],
    ],
  );
  assert.ok(!JSON.stringify(report).includes('exit 3'));
});
