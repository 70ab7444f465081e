import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../../blob/contract.ts';
import { openLayerFile } from '../../blob/open-layer-blob.ts';
import { MAX_LAYERS, MAX_LOCAL_ENTRIES, NULL_UUID } from '../../lsmt/format.ts';
import { merge } from '../../lsmt/overlay.ts';
import { inSlices } from '../../lsmt/slices.ts';
import type { LayerStack } from '../contract.ts';
import { FlatStack } from './flat-stack.ts';
import { type OpenLayerLimits, openSealedLayer, type SealedLayer } from './sealed-layer.ts';
import { Shared, type SharedHold, unlessAborted } from './shared.ts';
import { Stack } from './stack.ts';

/** How a layer of a stack is found. */
export interface LayerRef extends OpenLayerLimits {
  /** Equal for equal layers: a digest, or the path of a file. */
  readonly key: string;
  /** @returns the LSMT blob, out of its wrappers */
  readonly open: () => Promise<BlobSource>;
}

/** A sealed layer in a file of this host, wrapped or not, with as many segments as layers of this host may have. */
export function fileLayer(path: string): LayerRef {
  return { key: path, open: () => openLayerFile(path), maxEntries: MAX_LOCAL_ENTRIES };
}

/** Layers of a chain, opened and merged. */
export interface OpenChain {
  readonly flat: FlatStack;
  readonly virtualSize: number;
  readonly layers: readonly { close(): Promise<void> }[];
}

/** The layers and merged indexes in use: each is opened once, however many volumes stand on it. */
export class LayerPool {
  readonly #layers = new Map<string, Shared<SealedLayer>>();
  readonly #chains = new Map<string, Shared<OpenChain>>();

  /**
   * @param bottomFirst layers of the stack; none is a stack that reads as zeros
   * @throws AenvError `layer_corrupt` if a layer is damaged or does not belong on the one below it, `layer_unavailable`
   */
  async openStack(bottomFirst: readonly LayerRef[], signal?: AbortSignal): Promise<LayerStack> {
    const hold = await this.openChain(bottomFirst, signal);
    return new Stack(hold.value.virtualSize, hold.value.flat, [], [hold]);
  }

  /** The same without a reader on top. */
  async openChain(bottomFirst: readonly LayerRef[], signal?: AbortSignal): Promise<SharedHold<OpenChain>> {
    if (bottomFirst.length > MAX_LAYERS) {
      throw new AenvError('layer_corrupt', `a stack of ${bottomFirst.length} layers; the most is ${MAX_LAYERS}`);
    }
    const key = JSON.stringify(bottomFirst.map((ref) => ref.key));
    let shared = this.#chains.get(key);
    if (shared === undefined) {
      const made = new Shared(
        () => this.#openChain(bottomFirst),
        async (chain) => {
          await Promise.all(chain.layers.map((layer) => layer.close()));
        },
        () => this.#forget(this.#chains, key, made),
      );
      shared = made;
      this.#chains.set(key, made);
    }
    // The opening serves whoever else waits for it, so an abort ends only this wait.
    return unlessAborted(shared.use(), signal);
  }

  async #openChain(bottomFirst: readonly LayerRef[]): Promise<OpenChain> {
    const opening = await Promise.allSettled(bottomFirst.map((ref) => this.#openLayer(ref)));
    const holds = opening.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    try {
      for (const result of opening) if (result.status === 'rejected') throw result.reason;
      const layers = holds.map((hold) => hold.value);
      checkParents(layers, bottomFirst);
      const topFirst = layers.map((layer, level) => layer.index.atLevel(level)).reverse();
      const index = await inSlices(merge(topFirst));
      const flat = new FlatStack(
        index,
        layers.map((layer) => layer.source),
      );
      const virtualSize = layers.findLast((layer) => layer.header.virtualSize > 0)?.header.virtualSize ?? 0;
      return { flat, virtualSize, layers: holds };
    } catch (error) {
      await Promise.all(holds.map((hold) => hold.close()));
      throw error;
    }
  }

  async #openLayer(ref: LayerRef): Promise<SharedHold<SealedLayer>> {
    let shared = this.#layers.get(ref.key);
    if (shared === undefined) {
      const made = new Shared(
        () => openRef(ref),
        (layer) => layer.source.close(),
        () => this.#forget(this.#layers, ref.key, made),
      );
      shared = made;
      this.#layers.set(ref.key, made);
    }
    return shared.use();
  }

  #forget<T>(map: Map<string, Shared<T>>, key: string, shared: Shared<T>): void {
    if (map.get(key) === shared) map.delete(key);
  }
}

async function openRef(ref: LayerRef): Promise<SealedLayer> {
  const source = await ref.open();
  try {
    return await openSealedLayer(source, ref);
  } catch (error) {
    if (error instanceof AenvError && error.code === 'layer_corrupt') await source.distrust?.(0, source.size);
    await source.close();
    if (error instanceof AenvError && error.code === 'layer_corrupt') {
      throw new AenvError('layer_corrupt', `layer ${ref.key}: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

/** A layer that names its parent stands on that one only. */
function checkParents(layers: readonly SealedLayer[], refs: readonly LayerRef[]): void {
  for (const [i, layer] of layers.entries()) {
    const below = layers[i - 1];
    const parent = layer.header.parentUuid;
    if (below === undefined || parent === NULL_UUID || parent === below.header.uuid) continue;
    throw new AenvError(
      'layer_corrupt',
      `layer ${refs[i]?.key} was made on ${parent}, not on ${refs[i - 1]?.key} (${below.header.uuid})`,
    );
  }
}
