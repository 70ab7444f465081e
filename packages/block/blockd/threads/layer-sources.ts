import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { LayerRef } from '../../layers/stack/pool.ts';

/**
 * Where layers come from that are not files of this host. Reading from registries is the business of a room above this
 * one: the node names a module of it, and each thread loads it.
 */
export interface LayerSources {
  /**
   * How a layer is opened.
   * @param source what the disk's record has of it
   * @throws AenvError when this is no layer that it knows
   */
  ref(key: string, source: unknown): LayerRef;
  close(): Promise<void>;
}

export interface LayerSourcesOptions {
  /** what the node has written for the module */
  readonly config: unknown;
  /** folder of this thread alone, for what it keeps; made by the module */
  readonly folder: string;
  readonly log: Logger;
}

/** The member `createLayerSources` of such a module. */
export type CreateLayerSources = (options: LayerSourcesOptions) => Promise<LayerSources>;

/** @throws Error when the module has no such member */
export async function loadLayerSources(module: string): Promise<CreateLayerSources> {
  const loaded: unknown = await import(module);
  if (typeof loaded === 'object' && loaded !== null && 'createLayerSources' in loaded) {
    const create = loaded.createLayerSources;
    if (typeof create === 'function') return create as CreateLayerSources;
  }
  throw new Error(`${module} has no createLayerSources`);
}
