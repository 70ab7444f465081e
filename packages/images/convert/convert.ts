import { join } from 'node:path';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { markUsed } from '@aenv/platform/files/mark-used.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { applyLayer } from '../ext4/apply/layer.ts';
import { DEFAULT_LIMITS, type LayerLimits } from '../ext4/apply/limits.ts';
import { ImageFiles } from '../ext4/files/image-files.ts';
import { rootIdentity, uuidOf } from '../ext4/identity.ts';
import { geometryOf } from '../ext4/model/geometry.ts';
import { Tree } from '../ext4/model/tree.ts';
import { loadTree, saveTree } from '../ext4/sidecar/file.ts';
import type { BlockSink } from '../ext4/sink.ts';
import { writeChanges } from '../ext4/write-changes.ts';
import type { OciImage, OciLayer } from '../oci/layout.ts';
import { prepareRoot, startStateId } from '../start-state/prepare.ts';
import type { ImageStart } from '../start-state/start.ts';
import { archiveOf } from './archive.ts';
import { chainIdOf, layerKey, sha256 } from './chain.ts';
import { type ConvertedLayer, MODEL_FILE, readRecord, writeRecord } from './layer-record.ts';
import { LayerSink } from './layer-sink.ts';

export interface ConvertProgress {
  /** layer that is being converted, from 1; one more than there are for the start state */
  readonly layer: number;
  readonly layers: number;
  /** bytes of stored layers that are done, and of all of them */
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface ConvertOptions {
  /** folder of converted layers, shared by all images; one folder a layer, named by its key */
  readonly layersDir: string;
  /** bytes of the disk, a multiple of 4096; default 10 GiB, sparse */
  readonly sizeBytes?: number;
  /** whether the start state is added, as for what sandboxes boot; default true */
  readonly startState?: boolean;
  readonly limits?: LayerLimits;
  readonly log: Logger;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: ConvertProgress) => void;
}

/** The disk of an image, as a stack of layers in files of this host. */
export interface ConvertedImage {
  /** bottom first; the last one holds the start state, if that was asked for */
  readonly layers: readonly ConvertedLayer[];
  /** bytes of the disk */
  readonly sizeBytes: number;
  readonly start: ImageStart;
}

type Source = Pick<OciImage, 'config' | 'layers'>;

const DEFAULT_DISK = 10 * 2 ** 30;
/** Beyond this many, all further layers of an image become one: stacks have a limit, and nobody shares those. */
const MAX_SINGLE = 64;

/**
 * Makes the disk that sandboxes of an image start from: one layer of overlaybd for each layer of the image, with what it
 * changes in an ext4 file system, and one for E2B's start state. A layer is kept under a key of everything that it depends
 * on, the size of the disk included, so every image with the same layers below has it too. Nothing is mounted, and no
 * rights are needed. A layer is there as a whole or not at all.
 * @throws AenvError `image_invalid`, `invalid_request` for a size that no disk can have, `no_space`, `asset_failed`; what
 *   the image's blobs throw; the signal's reason
 */
export async function convertImage(image: Source, options: ConvertOptions): Promise<ConvertedImage> {
  if (image.layers.some(({ form }) => form !== 'tar')) {
    // Their file system was made by others: nothing is written to it here.
    throw new AenvError('image_invalid', 'the image has layers of overlaybd, which are used as they are');
  }
  try {
    return await new Conversion(image, options).run();
  } catch (error) {
    throw error instanceof Error && 'code' in error && error.code === 'ENOSPC' ? AenvError.from(error) : error;
  }
}

/** A step of a conversion: a layer of the image, or the start state. */
interface Step {
  readonly chainId: string;
  readonly key: string;
  apply(tree: Tree, sink: BlockSink): Promise<{ readonly start?: ConvertedLayer['start'] }>;
}

class Conversion {
  readonly #image: Source;
  readonly #options: ConvertOptions;
  readonly #sizeBytes: number;
  readonly #steps: readonly Step[];
  /** layers that are there, bottom first */
  readonly #done: ConvertedLayer[] = [];
  /** the file system after the last of them; undefined when it has to be loaded first */
  #tree: Tree | undefined;

  constructor(image: Source, options: ConvertOptions) {
    this.#image = image;
    this.#options = options;
    this.#sizeBytes = options.sizeBytes ?? DEFAULT_DISK;
    geometryOf(this.#sizeBytes);
    this.#steps = this.#plan();
  }

  async run(): Promise<ConvertedImage> {
    const lastOfImage = this.#steps.length - (this.#hasStartState ? 2 : 1);
    for (const [at, step] of this.#steps.entries()) {
      this.#options.signal?.throwIfAborted();
      const folder = join(this.#options.layersDir, step.key);
      const kept = await readRecord(folder);
      const layer = kept !== undefined && (await markUsed(folder)) ? kept : await this.#make(at, step);
      this.#done.push(layer);
      this.#report(at === lastOfImage ? this.#image.layers.length : at + 1, 0);
    }
    const start = this.#done.at(-1)?.start ?? { user: 'root', workdir: '/' };
    return {
      layers: this.#done,
      sizeBytes: this.#sizeBytes,
      start: { ...start, envVars: this.#image.config.env },
    };
  }

  get #hasStartState(): boolean {
    return this.#options.startState ?? true;
  }

  #plan(): Step[] {
    const steps: Step[] = [];
    const { layers } = this.#image;
    let chainId: string | undefined;
    for (let from = 0; from < layers.length; ) {
      const to = from + 1 < MAX_SINGLE ? from + 1 : layers.length;
      const part = layers.slice(from, to);
      const first = from;
      for (const layer of part) chainId = chainIdOf(chainId, layer.diffId);
      steps.push(
        this.#step(chainId ?? '', async (tree, sink) => {
          for (const [at, layer] of part.entries()) {
            await applyLayer(tree, this.#archive(first + at, layer), sink, this.#applyOptions());
          }
          return {};
        }),
      );
      from = to;
    }
    const { config } = this.#image;
    // Also an image of nothing is a file system.
    if (!this.#hasStartState) return steps.length > 0 ? steps : [this.#step(sha256('empty'), async () => ({}))];
    steps.push(
      this.#step(chainIdOf(chainId, startStateId(config)), async (tree, sink) => {
        await using stack = await openStack(this.#done);
        tree.layer++;
        return { start: await prepareRoot(new ImageFiles(tree, sink, stack), config) };
      }),
    );
    return steps;
  }

  #step(chainId: string, apply: Step['apply']): Step {
    return { chainId, key: layerKey(chainId, this.#sizeBytes), apply };
  }

  async #make(at: number, step: Step): Promise<ConvertedLayer> {
    const { layersDir, log, signal } = this.#options;
    const started = performance.now();
    let tree: Tree | undefined;
    const folder = await assetFolder(layersDir, step.key, async (result) => {
      // A tree is of no use once something was applied to it in vain.
      tree = (await this.#treeBelow(at)) ?? this.#newTree();
      this.#tree = undefined;
      const identity = {
        ...{ uuid: uuidOf(step.key), virtualSize: this.#sizeBytes },
        parentUuid: this.#done.at(-1)?.uuid,
      };
      await using sink = await LayerSink.create(result, identity);
      const { start } = await step.apply(tree, sink);
      await writeChanges(tree, sink, signal);
      const { digest, sizeBytes } = await sink.finish();
      await saveTree(join(result, MODEL_FILE), tree);
      const { parentUuid, ...rest } = identity;
      await writeRecord(result, {
        ...{ chainId: step.chainId, digest, sizeBytes, ...rest },
        ...(parentUuid === undefined ? {} : { parentUuid }),
        ...(start === undefined ? {} : { start }),
      });
    });
    // Somebody else may have been first; then the file system after it is read from there.
    this.#tree = tree;
    const layer = await readRecord(folder);
    if (layer === undefined) throw new AenvError('asset_failed', `${folder} has gone while it was made`);
    const ms = Math.round(performance.now() - started);
    log.info('layer converted', { layer: `${at + 1}/${this.#steps.length}`, bytes: layer.sizeBytes, ms });
    return layer;
  }

  #newTree(): Tree {
    // The lowest layer names the file system, whatever comes above it.
    return Tree.create(rootIdentity(this.#steps[0]?.key ?? '', this.#sizeBytes));
  }

  /** The file system as the layers below step `at` have it; undefined when there are none. */
  async #treeBelow(at: number): Promise<Tree | undefined> {
    const below = this.#steps[at - 1];
    if (below === undefined || this.#tree !== undefined) return this.#tree;
    const kept = await loadTree(join(this.#options.layersDir, below.key, MODEL_FILE));
    if (kept !== undefined) return kept;
    this.#options.log.warn('the model of a layer is missing: its archives are read again', { chainId: below.chainId });
    const tree = this.#newTree();
    for (const step of this.#steps.slice(0, at)) {
      await step.apply(tree, NOWHERE);
      await writeChanges(tree, NOWHERE, this.#options.signal);
    }
    return tree;
  }

  #archive(at: number, layer: OciLayer): AsyncIterable<Uint8Array> {
    return archiveOf(layer, this.#options.signal, (bytes) => this.#report(at, bytes));
  }

  #applyOptions() {
    const { signal, limits = DEFAULT_LIMITS } = this.#options;
    return signal === undefined ? { limits } : { limits, signal };
  }

  #report(done: number, bytes: number): void {
    const sum = (layers: readonly OciLayer[]) => layers.reduce((total, { sizeBytes }) => total + sizeBytes, 0);
    const { layers } = this.#image;
    this.#options.onProgress?.({
      layer: Math.min(done, layers.length) + 1,
      layers: layers.length,
      doneBytes: sum(layers.slice(0, done)) + Math.min(bytes, layers[done]?.sizeBytes ?? 0),
      totalBytes: sum(layers),
    });
  }
}

/** For layers that are there already: only what they do to the tree counts. */
const NOWHERE: BlockSink = { write: () => undefined };

async function openStack(layers: readonly ConvertedLayer[]) {
  const stack = await new LayerPool().openStack(layers.map(({ path }) => fileLayer(path)));
  return {
    read: (target: Uint8Array, offset: number, signal?: AbortSignal) => stack.read(target, offset, signal),
    [Symbol.asyncDispose]: () => stack.close(),
  };
}
