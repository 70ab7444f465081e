import type { Credentials } from '@aenv/images/registry/credentials/contract.ts';
import type { BuildIds, TemplateBuilds } from '../builds/contract.ts';
import type { ReadyCheck } from '../contract.ts';

/** What a template made of an image shall be. */
export interface NewTemplate {
  /** a template that has it gets a new build and keeps its id */
  readonly alias: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  /** absent: 10 GiB, sparse; an image that is block layers already has a size of its own */
  readonly diskSizeMb?: number | undefined;
  /** what points at the version that is built; absent: `default` */
  readonly tags?: readonly string[] | undefined;
}

/** The image, and what its configuration does not say. */
export interface ImageBuild {
  /** as `parseReference` takes it */
  readonly image: string;
  /** for its registry, instead of those that the host has; kept in memory only */
  readonly credentials?: Credentials | undefined;
  /** runs in every sandbox as the image's user, in its working directory */
  readonly startCmd?: string | undefined;
  /** what a sandbox waits for before it counts as running; a command runs as the image's user */
  readonly ready?: ReadyWish | undefined;
  /** limit of `ms` for the whole build */
  readonly timeoutMs?: number | undefined;
}

export type ReadyWish = Extract<ReadyCheck, { kind: 'http' }> | Omit<Extract<ReadyCheck, { kind: 'command' }>, 'user'>;

/** Templates made of images of registries; their builds can be asked about as those of the product can. */
export interface ImageTemplates extends TemplateBuilds {
  /**
   * Takes an order; nothing is fetched before `start`. The template is there when its build has succeeded.
   * @throws AenvError `invalid_request` for a name that belongs to the product or to a snapshot
   */
  create(wanted: NewTemplate): BuildIds;
  /**
   * Begins a build and returns at once; what comes of it is told by `state`.
   * @throws AenvError `template_not_found`, `build_not_waiting`, `template_building`, `capacity_exhausted`
   */
  start(ids: BuildIds, build: ImageBuild): void;
  /**
   * Brings an image here for a sandbox that boots it: a template without a name, the same for the same image and sizes.
   * @returns its id
   * @throws AenvError as pulling does; `capacity_exhausted`
   */
  prepareCold(image: string, sizes: Omit<NewTemplate, 'alias'>): Promise<string>;
  /**
   * Forgets the builds of a template that never came to be.
   * @returns whether there were any
   * @throws AenvError `template_building`
   */
  forget(templateId: string): boolean;
  /**
   * Removes a template with its names and builds. Layers that others may share stay.
   * @throws AenvError `template_not_found`; `template_in_use` with the ids of the sandboxes; `template_building`;
   *   `invalid_request` for one of the product
   */
  remove(reference: string): void;
}
