/** A named starting point for sandboxes, as the ledger has it: one version of it, the one that was asked for. */
export interface Template {
  readonly templateId: string;
  readonly buildId: string;
  readonly aliases: readonly string[];
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastSpawnedAt: Date | null;
  readonly spawnCount: number;
  readonly envdVersion: string;
  readonly source: TemplateSource;
  readonly start: StartState;
}

/** Which root file system a template boots. */
export interface TemplateSource {
  /** digest of the OCI manifest that it was made from */
  readonly imageDigest: string;
  /** layers of the disk, bottom first */
  readonly layers: readonly TemplateLayer[];
}

/** A layer of a template's disk: on this host, or read from a registry on demand. */
export type TemplateLayer = LocalLayer | RegistryLayer;

/** A file that has to stay for as long as a template, a snapshot or a disk has it. */
export interface LocalLayer {
  readonly kind: 'file';
  /** absolute */
  readonly path: string;
}

/** A blob of a registry. What is kept of it on this host may go at any time: it is fetched again. */
export interface RegistryLayer {
  readonly kind: 'remote';
  /** HOST or HOST:PORT */
  readonly host: string;
  readonly repository: string;
  readonly digest: string;
  /** bytes */
  readonly size: number;
}

/** What envd is told before user code runs, and what a sandbox does before it counts as running. */
export interface StartState {
  readonly envVars: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workdir: string;
  /** begun when the sandbox has its identity, and left running */
  readonly startCommand?: StartCommand;
  /** holds when the sandbox can be used; absent: as soon as envd answers */
  readonly ready?: ReadyCheck;
}

/** A command for `bash -l -c`, in the working directory of the template. */
export interface StartCommand {
  readonly cmd: string;
  readonly user: string;
}

/** A command that ends with 0, or an HTTP server of the guest that answers with a status of 2xx. */
export type ReadyCheck =
  | { readonly kind: 'command'; readonly cmd: string; readonly user: string }
  | {
      readonly kind: 'http';
      readonly port: number;
      readonly path: string;
      /** asked once before a machine is captured: the server loads what its clients will need, and then answers */
      readonly warmPath?: string | undefined;
    };

/** A name of a version of a template. */
export interface TemplateTag {
  readonly tag: string;
  readonly buildId: string;
  /** since when it points there */
  readonly createdAt: Date;
}

export interface TemplateService {
  /** Each with the version of its tag `default`, or else the one that was tagged last. */
  list(): readonly Template[];
  /**
   * What sandboxes start from: by id, alias or `namespace/alias`, each with `:tag` where it is not `default`.
   * @throws AenvError `template_not_found`, also for a tag that it has not
   */
  resolve(reference: string): Template;
  /** The same for a template as a whole: without a tag in the reference none is needed. */
  find(reference: string): Template;
  /** All versions that a tag points at, newest first. @throws AenvError `template_not_found` */
  versions(reference: string): readonly Template[];
  /** @throws AenvError `template_not_found` */
  tags(reference: string): readonly TemplateTag[];
  /**
   * Has tags point at the version that `target` means.
   * @throws AenvError `template_not_found`, `invalid_request` for what is no tag
   */
  assignTags(target: string, tags: readonly string[]): { readonly buildId: string; readonly tags: readonly string[] };
  /**
   * Removes tags; what sandboxes of those versions need stays.
   * @throws AenvError `template_not_found`; `invalid_request` for `default` and for the last one
   */
  removeTags(reference: string, tags: readonly string[]): void;
  /** Counts a start, for the API's `spawnCount` and `lastSpawnedAt`. */
  recordSpawn(templateId: string): void;
}
