import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { askGuestOverTcp } from './guest-report.ts';

const address = '127.77.3.1';
const metrics = { cpu_count: 1, cpu_used_pct: 1, mem_total: 1, mem_used: 1, mem_cache: 1, disk_used: 1, disk_total: 1 };
const event = { kind: 'start', age: 1, pid: 2, program: '/bin/sh', args: 0 };
const good = { cursor: 'a:1', lost: 0, metrics: { ...metrics, mem_total_mib: 0 }, events: [event] };

test('a report is taken by its shape, and a guest that sends anything else gives none', async (t) => {
  let answer: { status: number; text: string } = { status: 200, text: JSON.stringify(good) };
  const seen: unknown[] = [];
  const server = createServer((request, response) => {
    seen.push([request.url, request.headers['x-aenv-host-secret']]);
    response.writeHead(answer.status).end(answer.text);
  }).listen(ENVD_PORT, address);
  await once(server, 'listening');
  t.after(() => server.close());
  const ask = () => askGuestOverTcp({ address, hostSecret: 's' }, 'a b', new AbortController().signal);
  const report = await ask();
  assert.deepEqual([report.cursor, report.events], ['a:1', [event]]);
  assert.deepEqual(seen, [['/observe?after=a%20b', 's']]);
  for (const bad of [
    { ...good, metrics: { ...metrics, cpu_used_pct: -1 } },
    { ...good, metrics: { ...metrics, mem_total: 1e300 } },
    { ...good, cursor: 'x'.repeat(200) },
    { ...good, events: [{ ...event, program: 'x'.repeat(1000) }] },
    { ...good, events: Array.from({ length: 600 }, () => event) },
    { ...good, events: [{ ...event, kind: 'other' }] },
    [],
  ]) {
    answer = { status: 200, text: JSON.stringify(bad) };
    await assert.rejects(ask(), /no report/);
  }
  answer = { status: 200, text: 'x'.repeat(2 * 1024 * 1024) };
  await assert.rejects(ask(), /more than 1048576 bytes/);
  answer = { status: 404, text: '{}' };
  await assert.rejects(ask(), /answered 404/);
});
