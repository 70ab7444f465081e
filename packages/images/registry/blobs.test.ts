import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Exchange } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { bytesOf, RegistryFixture } from '../testing/registry-fixture.ts';
import { Transport } from './http/transport.ts';

const DATA = randomBytes(900_000);
const BLOB = { digest: digestOf(DATA), size: DATA.length };
const isBlob = (exchange: Exchange) => exchange.url.pathname.includes('/blobs/');

let fixture: RegistryFixture;

before(async () => {
  fixture = await RegistryFixture.start();
  await pushBlob({ base: fixture.base, repository: 'r' }, DATA);
});
after(() => fixture.close());

async function behind(rule: (exchange: Exchange) => unknown, retry = {}) {
  const front = await fixture.front();
  front.rule = async (exchange) => {
    if (isBlob(exchange)) await rule(exchange);
  };
  const client = fixture.client([front.host], { retry: { attempts: 4, firstWaitMs: 10, maxWaitMs: 3000, ...retry } });
  return { front, repository: client.repository(front.host, 'r') };
}

test('a connection that breaks is continued where it broke, as often as it makes way', async () => {
  const { front, repository } = await behind((exchange) => exchange.relay({ cutAfter: 100_000 }));
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
  assert.deepEqual(
    front.matching(/blobs/).map(({ headers }) => headers.range),
    [undefined, ...Array.from({ length: 8 }, (_, at) => `bytes=${(at + 1) * 100_000}-`)],
  );
});

test('a connection that breaks at once every time is given up', async () => {
  const { front, repository } = await behind((exchange) => exchange.relay({ cutAfter: 10 }));
  await assert.rejects(bytesOf(repository.blob(BLOB)), { code: 'registry_unavailable' });
  assert.equal(front.matching(/blobs/).length, 4);
});

test('a server that does not serve ranges gives the whole blob again, of which only the rest is taken', async () => {
  const { repository } = await behind((exchange) =>
    exchange.relay(exchange.earlier === 0 ? { cutAfter: 500_000 } : { ignoreRange: true }),
  );
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
});

test('a server that answers with another range than was asked for is no server to read from', async () => {
  const { repository } = await behind((exchange) => {
    if (exchange.earlier === 0) return exchange.relay({ cutAfter: 500_000 });
    exchange.reply(206, { 'content-range': `bytes 700000-899999/${DATA.length}` }, DATA.subarray(700_000));
  });
  await assert.rejects(bytesOf(repository.blob(BLOB)), { code: 'registry_unavailable', message: /another range/ });
});

test('wrong bytes are refused at the end with both digests', async () => {
  const { repository } = await behind((exchange) =>
    exchange.relay({ change: (body) => Buffer.concat([body.subarray(0, -1), Buffer.from([(body.at(-1) ?? 0) ^ 1])]) }),
  );
  await assert.rejects(bytesOf(repository.blob(BLOB)), (error: Error) => {
    assert.match(error.message, new RegExp(`has the digest sha256:[0-9a-f]{64} instead of ${BLOB.digest}`));
    assert.ok(!error.message.includes(`digest ${BLOB.digest}`));
    return 'code' in error && error.code === 'digest_mismatch';
  });
});

test('a blob that is shorter or longer than announced is refused', async () => {
  const short = await behind((exchange) =>
    exchange.headers.range === undefined
      ? exchange.relay({ change: (body) => body.subarray(0, 400_000) })
      : exchange.reply(416, { 'content-range': 'bytes */400000' }),
  );
  await assert.rejects(bytesOf(short.repository.blob(BLOB)), { code: 'digest_mismatch', message: /shorter/ });
  const long = await behind((exchange) => exchange.relay({ change: (body) => Buffer.concat([body, body]) }));
  await assert.rejects(bytesOf(long.repository.blob(BLOB)), { code: 'digest_mismatch', message: /more than 900000/ });
});

test('an answer that ends early is continued, also when it claims to be whole', async () => {
  const { repository } = await behind((exchange) => exchange.relay({ change: (body) => body.subarray(0, 400_000) }));
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
});

test('too many requests: the wait that the server asks for is kept', async () => {
  const { front, repository } = await behind((exchange) => {
    if (exchange.earlier === 0) exchange.reply(429, { 'retry-after': '1' }, '{"errors":[{"code":"TOOMANYREQUESTS"}]}');
  });
  const start = Date.now();
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
  assert.ok(Date.now() - start >= 990);
  assert.equal(front.matching(/blobs/).length, 2);
});

test('a wait that is too long is told instead', async () => {
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  const { front, repository } = await behind((exchange) => exchange.reply(429, { 'retry-after': date }));
  await assert.rejects(bytesOf(repository.blob(BLOB)), {
    code: 'registry_rate_limited',
    message: /answers 429 .* come again in 3[56]\d\d s$/,
  });
  assert.equal(front.matching(/blobs/).length, 1);
});

test('errors of the server are tried again, and told when they stay', async () => {
  const passing = await behind((exchange) => {
    if (exchange.earlier < 2) exchange.reply(503);
  });
  assert.deepEqual(await bytesOf(passing.repository.blob(BLOB)), DATA);
  const staying = await behind((exchange) =>
    exchange.reply(500, {}, '{"errors":[{"code":"UNKNOWN","message":"dis\\nk"}]}'),
  );
  await assert.rejects(bytesOf(staying.repository.blob(BLOB)), {
    code: 'registry_unavailable',
    message: /answers 500 .*\(UNKNOWN: dis k\)/,
  });
});

test('a slow server is waited for, one that says nothing more is asked again', async () => {
  const front = await fixture.front();
  front.rule = async (exchange) => {
    if (!isBlob(exchange)) return;
    if (exchange.earlier > 0) return exchange.relay({ pieceBytes: 100_000, pauseMs: 100 });
    exchange.response.writeHead(200, { 'content-length': String(DATA.length) });
    exchange.response.write(DATA.subarray(0, 300_000));
    await new Promise((resolve) => exchange.response.once('close', resolve));
  };
  const transport = new Transport({ stallMs: 500 });
  const repository = fixture.client([front.host], { transport }).repository(front.host, 'r');
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
  assert.deepEqual(
    front.matching(/blobs/).map(({ headers }) => headers.range),
    [undefined, 'bytes=300000-'],
  );
});

test('a cancelled download ends at once, also while it waits to try again', async () => {
  const cancel = new AbortController();
  const { repository } = await behind((exchange) => exchange.reply(429, { 'retry-after': '2' }));
  const reading = bytesOf(repository.blob(BLOB, cancel.signal));
  setTimeout(() => cancel.abort(new Error('enough')), 100);
  const start = Date.now();
  await assert.rejects(reading, /enough/);
  assert.ok(Date.now() - start < 1_900);
});

test('a mirror is asked first, and passed over when it fails, also in the middle of a blob', async () => {
  const mirror = await fixture.front();
  const origin = await fixture.front();
  const mirrors = [`${origin.host}=${mirror.host}/proxy/hub`];
  const client = fixture.client([mirror.host, origin.host], { mirrors });
  const repository = client.repository(origin.host, 'r');
  mirror.rule = async (exchange) => {
    assert.match(exchange.url.pathname, /^\/v2\/($|proxy\/hub\/r\/)/);
    if (!isBlob(exchange)) return;
    if (exchange.headers.range !== undefined) return exchange.reply(404);
    exchange.response.writeHead(200, { 'content-length': String(DATA.length) });
    exchange.response.write(DATA.subarray(0, 300_000), () => exchange.response.destroy());
  };
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
  assert.deepEqual(
    origin.matching(/blobs/).map(({ headers }) => headers.range),
    ['bytes=300000-'],
  );
  const part = Buffer.alloc(1000);
  await repository.range(BLOB, part, 5000);
  assert.deepEqual(part, DATA.subarray(5000, 6000));
});

test('parts are read by range; a size that is not the announced one is found out', async () => {
  const { repository } = await behind(() => {});
  const part = Buffer.alloc(65_536);
  await repository.range(BLOB, part, 123_456);
  assert.deepEqual(part, DATA.subarray(123_456, 123_456 + 65_536));
  await assert.rejects(repository.range({ ...BLOB, size: 1_000_000 }, part, 0), { code: 'digest_mismatch' });
  const whole = await behind((exchange) => exchange.relay({ ignoreRange: true }));
  await assert.rejects(whole.repository.range(BLOB, part, 0), {
    code: 'registry_unavailable',
    message: /does not serve parts/,
  });
});
