import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { LayerRef } from '../../layers/stack/pool.ts';
import type { CreateLayerSources, LayerSources } from './layer-sources.ts';
import type { ThreadData } from './operations.ts';

/** The sources of a thread, made when the first layer of theirs is opened: most nodes never need them. */
export class LazySources {
  readonly #data: ThreadData;
  readonly #log: Logger;
  readonly #create: CreateLayerSources | undefined;
  #sources: Promise<LayerSources> | undefined;

  constructor(data: ThreadData, log: Logger, create: CreateLayerSources | undefined) {
    this.#data = data;
    this.#log = log;
    this.#create = create;
  }

  /** @throws AenvError `layer_unavailable` when this daemon has no such sources; what they throw */
  async ref(key: string, source: unknown): Promise<LayerRef> {
    const { sources: files } = this.#data;
    const create = this.#create;
    if (create === undefined || files === undefined) {
      throw new AenvError('layer_unavailable', `layer ${key} is not on this host, and nobody says where to get it`);
    }
    this.#sources ??= this.#start(create, files.config);
    const starting = this.#sources;
    // The next one tries again, with a configuration that may be another one.
    starting.catch(() => {
      if (this.#sources === starting) this.#sources = undefined;
    });
    return (await starting).ref(key, source);
  }

  async close(): Promise<void> {
    const sources = this.#sources;
    this.#sources = undefined;
    await (await sources?.catch(() => undefined))?.close();
  }

  async #start(create: CreateLayerSources, configFile: string): Promise<LayerSources> {
    const config: unknown = JSON.parse(await readFile(configFile, 'utf8'));
    const { root, number } = this.#data;
    return await create({ config, folder: join(root, 'remote', String(number)), log: this.#log });
  }
}
