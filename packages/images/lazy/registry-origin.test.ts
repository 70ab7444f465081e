import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { Exchange } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { RegistryFixture } from '../testing/registry-fixture.ts';
import { BlobCache } from './blob-cache.ts';
import { PART } from './geometry.ts';
import { registryOrigin } from './registry-origin.ts';

const DATA = randomBytes(30 * PART + 17);
const BLOB = { digest: digestOf(DATA), size: DATA.length };

let fixture: RegistryFixture;
before(async () => {
  fixture = await RegistryFixture.start();
  await pushBlob({ base: fixture.base, repository: 'r' }, DATA);
});
after(() => fixture.close());

async function behind(
  rule: (exchange: Exchange) => unknown,
  use: (read: (o: number, n: number) => Promise<void>) => Promise<void>,
  offlineAfterMs = 20_000,
) {
  const root = await mkdtemp(join(tmpdir(), 'images-lazy-'));
  const front = await fixture.front();
  front.rule = async (exchange) => {
    if (exchange.url.pathname !== '/v2/') await rule(exchange);
  };
  const cache = await BlobCache.start({
    ...{ root, capacityBytes: 2 ** 30, keepFreeBytes: 0, offlineAfterMs, log: silentLogger },
  });
  try {
    const origin = registryOrigin(fixture.client([front.host]), { host: front.host, repository: 'r', ...BLOB });
    const blob = await cache.open({ ...BLOB, origin });
    await use(async (offset, length) => {
      const target = Buffer.alloc(length);
      await blob.read(target, offset);
      assert.ok(target.equals(DATA.subarray(offset, offset + length)));
    });
    return front;
  } finally {
    await cache.close();
    await rm(root, { recursive: true, force: true });
  }
}

test('parts of a layer are read from a registry, by range and nothing else of it', async () => {
  const front = await behind(
    () => {},
    async (read) => {
      await read(3 * PART + 5, 100);
      await read(DATA.length - 17, 17);
    },
  );
  assert.deepEqual(
    front.matching(/blobs/).map(({ headers }) => headers.range),
    [`bytes=${3 * PART}-${4 * PART - 1}`, `bytes=${30 * PART}-${DATA.length - 1}`],
  );
});

test('a redirect to where blobs are kept is asked for once, and anew when it has ended', async () => {
  const storage = await fixture.front({ address: '127.0.0.2' });
  let key = 1;
  storage.rule = (exchange) => {
    if (exchange.url.searchParams.get('key') !== String(key)) exchange.reply(403);
  };
  const front = await behind(
    (exchange) => exchange.reply(307, { location: `${storage.base}${exchange.url.pathname}?key=${key}` }),
    async (read) => {
      for (const part of [0, 5, 10]) await read(part * PART, 10);
      key = 2;
      await read(15 * PART, 10);
    },
  );
  assert.equal(front.matching(/blobs/).length, 2);
  assert.equal(storage.seen.length, 5);
});

test('broken, slow, refused and wrong answers are asked again', async () => {
  await behind(
    (exchange) => {
      if (exchange.earlier === 0) return exchange.relay({ cutAfter: 1000 });
      if (exchange.earlier === 1) return exchange.reply(503);
      if (exchange.earlier === 2) return exchange.reply(429, { 'retry-after': '0' });
      if (exchange.earlier === 3) return exchange.relay({ change: (body) => body.subarray(1) });
    },
    (read) => read(2 * PART, 2 * PART),
  );
});

test('a registry that stays away is an I/O error in the end, and one without ranges is told', async () => {
  await behind(
    (exchange) => exchange.response.destroy(),
    (read) => assert.rejects(read(0, 10), { code: 'layer_unavailable', message: /the connection was cut/ }),
    600,
  );
  await behind(
    (exchange) => exchange.relay({ ignoreRange: true }),
    (read) => assert.rejects(read(0, 10), { code: 'layer_unavailable', message: /does not serve parts/ }),
  );
  await behind(
    (exchange) => exchange.reply(404),
    (read) => assert.rejects(read(0, 10), { code: 'layer_unavailable', message: /no such image/ }),
  );
});
