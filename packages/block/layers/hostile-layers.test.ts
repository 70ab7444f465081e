import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { verifyDigest } from '../blob/digest.ts';
import { memorySource } from '../blob/memory-source.ts';
import { openLayerBlob } from '../blob/open-layer-blob.ts';
import { damaged, fuzz, randomOf } from '../testing/fuzz.ts';
import { isCode } from '../testing/is-code.ts';
import { LayerPool } from './stack/pool.ts';
import { PowerCutFiles } from './testing/power-cut-files.ts';
import { makeSamples, SAMPLE_SIZE } from './testing/samples.ts';
import { reopenWritableLayer } from './writable/open.ts';

/** Times that a kind of input is damaged; in soak it is a minute. */
const TIMES = 120;
/** Bytes of memory that no input may make the parsers use, beyond what they had. */
const MEMORY = 256 * 2 ** 20;

let folder = '';
let samples: Awaited<ReturnType<typeof makeSamples>>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'block-hostile-'));
  samples = await makeSamples(folder);
});
after(() => rm(folder, { recursive: true, force: true }));

/** Opens a layer as a volume does and reads some of its disk. */
async function readLayer(bytes: Buffer): Promise<Buffer> {
  const open = () => openLayerBlob(memorySource(bytes));
  const stack = await new LayerPool().openStack([{ key: 'layer', open }]);
  try {
    const target = Buffer.alloc(SAMPLE_SIZE);
    await stack.read(target, 0);
    for (const range of stack.dataRanges(0, SAMPLE_SIZE)) assert.ok(range.length > 0);
    return target;
  } finally {
    await stack.close();
  }
}

/** Damages an input again and again: it is read or refused by name, in bounded memory. */
async function withstand(inputs: readonly Buffer[], read: (bytes: Buffer) => Promise<unknown>): Promise<void> {
  let refused = 0;
  const attempt = async (seed: number) => {
    const input = inputs[seed % inputs.length] ?? Buffer.alloc(0);
    try {
      await read(damaged(input, randomOf(seed)));
    } catch (error) {
      if (!(error instanceof AenvError && error.code === 'layer_corrupt')) throw error;
      refused++;
    }
  };
  await fuzz({ times: TIMES, memory: MEMORY, attempt });
  assert.ok(refused > TIMES / 10, `only ${refused} inputs were refused`);
}

test('every form of a layer reads as what was written', async () => {
  for (const { name, bytes } of samples.layers) {
    assert.ok((await readLayer(bytes)).equals(samples.content), name);
  }
});

// A packed layer is the same to the reader of layers, once the reader of packed files has taken it.
for (const isPacked of [false, true]) {
  const kind = isPacked ? 'packed layers' : 'layers';
  test(`${kind} damaged at random are read or refused by name, in bounded memory`, async () => {
    const inputs = samples.layers.filter(({ name }) => name.startsWith('packed') === isPacked);
    assert.ok(inputs.length > 2);
    await withstand(
      inputs.map(({ bytes }) => bytes),
      readLayer,
    );
  });
}

test('files of a writable layer damaged at random are opened or refused by name, in bounded memory', async () => {
  let turn = 0;
  await withstand([samples.data.subarray(0, 8192), samples.index], async (bytes) => {
    const files = new PowerCutFiles('/run');
    const isIndex = ++turn % 2 === 1;
    files.put('/layer/writable_data', isIndex ? samples.data : bytes);
    files.put('/layer/writable_index', isIndex ? bytes : samples.index);
    const layer = await reopenWritableLayer({ folder: '/layer', pendingPath: '/run/pending', files, bootId: 'boot' });
    layer.lookup(0, Math.min(layer.virtualSize, SAMPLE_SIZE), (_offset, length, place, zeroed) => {
      if (!zeroed) layer.readDataSync(Buffer.alloc(length), place);
    });
    await layer.close();
  });
});

test('whatever byte of a layer is changed, its structure or its digest tells', async () => {
  for (const { name, bytes } of samples.layers) {
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    await verifyDigest(memorySource(bytes), digest);
    // Each region: wrapper, headers, data, index or jump table, trailers, with a step that is no multiple of anything.
    for (let at = 0; at < bytes.length; at += 97) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      await assert.rejects(verifyDigest(memorySource(changed), digest), isCode('layer_corrupt'), `${name}, byte ${at}`);
      const read = await readLayer(changed).catch((error) => error);
      if (Buffer.isBuffer(read) || (read instanceof AenvError && read.code === 'layer_corrupt')) continue;
      assert.fail(`${name}, byte ${at}: ${read}`);
    }
  }
});

test('what must be in a layer is missed by name', async () => {
  const { bytes } = samples.layers[0] ?? assert.fail();
  const trailer = bytes.length - 4096;
  const changes: Record<string, (copy: Buffer) => Buffer | undefined> = {
    'no header': (copy) => copy.fill(0, 0, 24),
    'no trailer': (copy) => copy.fill(0, trailer, trailer + 24),
    'cut off in the trailer': (copy) => copy.subarray(0, -1),
    'only a header': (copy) => copy.subarray(0, 4096),
    nothing: (copy) => copy.subarray(0, 0),
    'not sealed': (copy) => write32(copy, trailer + 28, 2),
    'a header at the end': (copy) => write32(copy, trailer + 28, 7),
    'a sparse layer': (copy) => write32(copy, 28, 0x13),
    'an index file': (copy) => write32(copy, 28, 1),
    'an index before the data': (copy) => write64(copy, trailer + 32, 512n),
    'an index not in whole sectors': (copy) => write64(copy, trailer + 32, BigInt(trailer - 100)),
    'an index behind the end': (copy) => write64(copy, trailer + 32, 2n ** 40n),
    'an index beyond all numbers': (copy) => write64(copy, trailer + 32, 2n ** 63n),
    'too many entries': (copy) => write64(copy, trailer + 40, 1_000_001n),
    'more entries than bytes': (copy) => write64(copy, trailer + 40, 600n),
    'a disk that is too large': (copy) => write64(copy, trailer + 48, 2n ** 42n),
    'a uuid that is none': (copy) => copy.fill('x', trailer + 56, trailer + 60),
  };
  for (const [name, change] of Object.entries(changes)) {
    const changed = change(Buffer.from(bytes)) ?? Buffer.alloc(0);
    await assert.rejects(readLayer(changed), isCode('layer_corrupt'), name);
  }
});

function write32(copy: Buffer, at: number, value: number): Buffer {
  copy.writeUInt32LE(value, at);
  return copy;
}

function write64(copy: Buffer, at: number, value: bigint): Buffer {
  copy.writeBigUInt64LE(value, at);
  return copy;
}
