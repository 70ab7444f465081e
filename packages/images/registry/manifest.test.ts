import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resolveImage } from '../resolve/resolve-image.ts';
import type { Exchange } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { push } from '../testing/push.ts';
import { RegistryFixture } from '../testing/registry-fixture.ts';
import { tar } from '../testing/tar.ts';
import { MAX_MANIFEST } from './manifest.ts';

let fixture: RegistryFixture;

before(async () => {
  fixture = await RegistryFixture.start();
  const { layout } = fixture;
  await push({ base: fixture.base, repository: 'r' }, layout, await layout.image([tar({ name: 'a' })]), 'v1');
});
after(() => fixture.close());

async function resolve(name: string, rule: (exchange: Exchange) => unknown = () => {}) {
  const front = await fixture.front();
  front.rule = async (exchange) => {
    if (exchange.url.pathname.includes('/manifests/')) await rule(exchange);
  };
  const platform = { os: 'linux', architecture: 'amd64' };
  return resolveImage(`${front.host}/r${name}`, { client: fixture.client([front.host]), platform });
}

const document =
  (value: unknown, type = 'application/vnd.oci.image.manifest.v1+json') =>
  (exchange: Exchange) =>
    exchange.reply(200, { 'content-type': type }, JSON.stringify(value));

test('a manifest that has been changed on its way is refused with both digests', async () => {
  const spaced = (exchange: Exchange) => exchange.relay({ change: (body) => Buffer.concat([body, Buffer.from(' ')]) });
  const { digest } = await resolve(':v1');
  for (const name of [':v1', `@${digest}`]) {
    await assert.rejects(resolve(name, spaced), {
      code: 'digest_mismatch',
      message: new RegExp(`has the digest sha256:[0-9a-f]{64} instead of ${digest}$`),
    });
  }
});

test('a digest wins over a tag', async () => {
  const { digest } = await resolve(':v1');
  assert.equal((await resolve(`:v2@${digest}`)).digest, digest);
});

test('the old schema 1 is refused with the reason', async () => {
  const old = { schemaVersion: 1, name: 'r', tag: 'v1', fsLayers: [] };
  const type = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
  await assert.rejects(resolve(':v1', document(old, type)), { code: 'image_invalid', message: /schema 1/ });
});

test('what is too large, no JSON, or two things at once is no manifest', async () => {
  const large = (exchange: Exchange) => exchange.reply(200, {}, Buffer.alloc(MAX_MANIFEST + 1, ' '));
  await assert.rejects(resolve(':v1', large), { code: 'image_invalid', message: /larger than/ });
  await assert.rejects(
    resolve(':v1', (exchange) => exchange.reply(200, {}, '<html>')),
    {
      code: 'image_invalid',
      message: /no JSON/,
    },
  );
  await assert.rejects(resolve(':v1', document({ schemaVersion: 2, manifests: [], layers: [] })), {
    code: 'image_invalid',
    message: /an index and a manifest/,
  });
  const layer = { mediaType: 'x', digest: 'sha256:../../x', size: 1 };
  const config = {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: digestOf(Buffer.from('{}')),
    size: 2,
  };
  await assert.rejects(resolve(':v1', document({ schemaVersion: 2, config: layer, layers: [] })), {
    code: 'image_invalid',
  });
  await assert.rejects(resolve(':v1', document({ schemaVersion: 2, config, layers: [layer] })), {
    code: 'image_not_found',
  });
});

test('an index that leads to itself comes to an end', async () => {
  const type = 'application/vnd.oci.image.index.v1+json';
  const body = {
    schemaVersion: 2,
    mediaType: type,
    manifests: [{ mediaType: type, digest: `sha256:${'0'.repeat(64)}`, size: 5 }],
  };
  await assert.rejects(resolve(':v1', document(body, type)), { code: 'digest_mismatch' });
});
