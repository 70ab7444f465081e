import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { testEnvd } from '../testing/envd.ts';
import { type ConditionHeaders, select } from './conditions.ts';

const FILE = { etag: '"e"', modified: Date.parse('2026-01-02T03:04:05Z') + 678, size: 10 };
const SAME = 'Fri, 02 Jan 2026 03:04:05 GMT';
const EARLIER = 'Fri, 02 Jan 2026 03:04:04 GMT';
const LATER = 'Fri, 02 Jan 2026 03:04:06 GMT';

test('ranges: from both ends, clipped, impossible, and what counts as none', () => {
  const range = (text: string) => select({ range: text }, FILE);
  assert.deepEqual(range('bytes=2-4'), { kind: 'range', start: 2, end: 4 });
  assert.deepEqual(range('bytes=2-'), { kind: 'range', start: 2, end: 9 });
  assert.deepEqual(range('bytes=-3'), { kind: 'range', start: 7, end: 9 });
  assert.deepEqual(range('bytes=-30'), { kind: 'range', start: 0, end: 9 });
  assert.deepEqual(range('bytes=9-99'), { kind: 'range', start: 9, end: 9 });
  for (const text of ['bytes=10-', 'bytes=-0', 'bytes=99-100'])
    assert.deepEqual(range(text), { kind: 'unsatisfiable' });
  for (const text of ['bytes=4-2', 'bytes=-', 'bytes=a-b', 'lines=1-2', 'bytes=0-1,3-4', 'bytes=1e3-']) {
    assert.deepEqual(range(text), { kind: 'whole' }, text);
  }
  assert.deepEqual(select({ range: 'bytes=0-' }, { ...FILE, size: 0 }), { kind: 'unsatisfiable' });
});

test('conditions by tag and by time, in the order of the standard', () => {
  const cases: [ConditionHeaders, string][] = [
    [{ 'if-match': '"e"' }, 'whole'],
    [{ 'if-match': '*' }, 'whole'],
    [{ 'if-match': '"x", "e"' }, 'whole'],
    [{ 'if-match': '"x"' }, 'failed'],
    [{ 'if-match': '"e"', 'if-unmodified-since': EARLIER }, 'whole'],
    [{ 'if-unmodified-since': SAME }, 'whole'],
    [{ 'if-unmodified-since': EARLIER }, 'failed'],
    [{ 'if-none-match': '"e"' }, 'not-modified'],
    [{ 'if-none-match': 'W/"e"' }, 'not-modified'],
    [{ 'if-none-match': '"x"', 'if-modified-since': LATER }, 'whole'],
    [{ 'if-modified-since': SAME }, 'not-modified'],
    [{ 'if-modified-since': EARLIER }, 'whole'],
    [{ 'if-modified-since': 'yesterday' }, 'whole'],
    [{ range: 'bytes=0-1', 'if-range': '"e"' }, 'range'],
    [{ range: 'bytes=0-1', 'if-range': '"x"' }, 'whole'],
    [{ range: 'bytes=0-1', 'if-range': SAME }, 'range'],
    [{ range: 'bytes=0-1', 'if-range': EARLIER }, 'whole'],
    [{ range: 'bytes=0-1', 'if-none-match': '"e"' }, 'not-modified'],
  ];
  for (const [headers, kind] of cases) assert.equal(select(headers, FILE).kind, kind, JSON.stringify(headers));
});

test('a client resumes a download where it broke off', async () => {
  await using envd = await testEnvd();
  const path = join(envd.dir, 'f');
  await writeFile(path, '0123456789');
  const get = (headers: Record<string, string>) =>
    fetch(`${envd.url}/files?path=${encodeURIComponent(path)}`, { headers });
  const whole = await get({});
  const etag = whole.headers.get('etag') ?? '';
  assert.equal(whole.headers.get('accept-ranges'), 'bytes');
  await whole.text();
  const part = await get({ range: 'bytes=4-', 'if-range': etag, 'accept-encoding': 'gzip' });
  assert.equal(part.status, 206);
  assert.equal(part.headers.get('content-range'), 'bytes 4-9/10');
  assert.equal(part.headers.get('content-length'), '6');
  assert.equal(part.headers.get('content-encoding'), null);
  assert.equal(await part.text(), '456789');
  assert.equal((await get({ 'if-none-match': etag })).status, 304);
  const beyond = await get({ range: 'bytes=10-' });
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers.get('content-range'), 'bytes */10');
  await writeFile(path, 'changed');
  assert.equal(await (await get({ range: 'bytes=4-', 'if-range': etag })).text(), 'changed');
});
