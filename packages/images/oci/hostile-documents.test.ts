import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { fuzz, randomOf } from '@aenv/block/testing/fuzz.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type ContentStore, findImage } from './find-image.ts';
import type { Descriptor } from './schemas.ts';

/** Documents that are tried; in soak it is a minute. */
const TIMES = 1000;
/** Bytes of memory that no document may take beyond what there was. */
const MEMORY = 256 * 2 ** 20;

const OCI = 'application/vnd.oci.image';
const PLATFORM = { os: 'linux', architecture: 'amd64' };

/** Documents by digest. A descriptor whose document is not there gets any other one, as a hostile store might give. */
class HostileStore implements ContentStore {
  readonly name = 'the store';
  readonly #documents = new Map<string, Buffer>();

  add(text: string, mediaType: string): Descriptor {
    const data = Buffer.from(text);
    const digest = `sha256:${createHash('sha256').update(data).digest('hex')}`;
    this.#documents.set(digest, data);
    return { mediaType, digest, size: data.length };
  }

  document(descriptor: Descriptor): Promise<Buffer> {
    const all = [...this.#documents.values()];
    const data = this.#documents.get(descriptor.digest) ?? all[descriptor.digest.length % all.length];
    return Promise.resolve(data ?? Buffer.alloc(0));
  }

  async *layer(): AsyncGenerator<Uint8Array> {}
}

const STRANGE = [null, -1, 0, 1e300, '', 'x', [], {}, true, '../../x', `sha256:${'f'.repeat(64)}`, { '': {} }];

/** Puts something strange in some place of a document, or damages its text. */
function damaged(document: unknown, random: (n: number) => number): string {
  const copy = structuredClone(document) as Record<string, unknown>;
  for (let changes = 1 + random(3); changes > 0; changes--) {
    let place = copy;
    for (let depth = random(4); depth > 0; depth--) {
      const inner = Object.values(place).filter((value) => typeof value === 'object' && value !== null);
      place = (inner[random(Math.max(1, inner.length))] ?? place) as Record<string, unknown>;
    }
    const keys = Object.keys(place);
    const key = keys[random(Math.max(1, keys.length))] ?? 'x';
    if (random(4) === 0) delete place[key];
    else place[key] = structuredClone(STRANGE[random(STRANGE.length)]);
  }
  const text = JSON.stringify(copy);
  if (random(5) > 0) return text;
  const at = random(text.length);
  return text.slice(0, at) + String.fromCharCode(random(256)) + text.slice(at + random(3));
}

async function tryOne(seed: number): Promise<'found' | 'refused'> {
  const fraction = randomOf(seed);
  const random = (n: number) => Math.floor(fraction() * n);
  const store = new HostileStore();
  const maybe = (document: unknown) => (random(2) === 0 ? damaged(document, random) : JSON.stringify(document));
  const layer = store.add('layer', `${OCI}.layer.v1.tar`);
  const config = { ...PLATFORM, config: { Env: ['A=1'] }, rootfs: { type: 'layers', diff_ids: [layer.digest] } };
  const manifest = { schemaVersion: 2, config: store.add(maybe(config), `${OCI}.config.v1+json`), layers: [layer] };
  const inner = store.add(maybe(manifest), `${OCI}.manifest.v1+json`);
  const index = { schemaVersion: 2, manifests: [{ ...inner, platform: PLATFORM }] };
  const top = store.add(maybe(index), `${OCI}.index.v1+json`);
  try {
    const image = await findImage(store, [top], { platform: PLATFORM });
    for (const { digest, diffId } of image.layers)
      assert.match(`${digest} ${diffId}`, /^sha256:[0-9a-f]{64} sha256:[0-9a-f]{64}$/);
    return 'found';
  } catch (error) {
    if (error instanceof AenvError && ['image_invalid', 'image_platform_missing'].includes(error.code))
      return 'refused';
    throw error;
  }
}

test('whatever documents say, an image is found or they are refused by name, in bounded memory', async () => {
  const count = { found: 0, refused: 0 };
  const attempt = async (seed: number) => {
    count[await tryOne(seed)]++;
  };
  await fuzz({ times: TIMES, memory: MEMORY, attempt });
  assert.ok(count.found > 0 && count.refused > 0, JSON.stringify(count));
});

test('documents nested without end, and lists without end, are refused', async () => {
  const store = new HostileStore();
  let descriptor = store.add('{"schemaVersion":2,"manifests":[]}', `${OCI}.index.v1+json`);
  for (let depth = 0; depth < 10; depth++) {
    descriptor = store.add(JSON.stringify({ schemaVersion: 2, manifests: [descriptor] }), `${OCI}.index.v1+json`);
  }
  await assert.rejects(findImage(store, [descriptor], { platform: PLATFORM }), {
    code: 'image_invalid',
    message: /nested/,
  });
  const small = store.add('{"schemaVersion":2,"manifests":[]}', `${OCI}.index.v1+json`);
  const wide = (of: Descriptor) =>
    store.add(JSON.stringify({ schemaVersion: 2, manifests: Array(900).fill(of) }), `${OCI}.index.v1+json`);
  await assert.rejects(findImage(store, [wide(wide(small))], { platform: PLATFORM }), {
    code: 'image_invalid',
    message: /too many manifests/,
  });
  const large = { ...small, size: 2 ** 40 };
  await assert.rejects(findImage(store, [large], { platform: PLATFORM }), {
    code: 'image_invalid',
    message: /JSON document of/,
  });
  const deep = store.add(`{"schemaVersion":2,"manifests":${'['.repeat(100_000)}`, `${OCI}.index.v1+json`);
  await assert.rejects(findImage(store, [deep], { platform: PLATFORM }), { code: 'image_invalid' });
});
