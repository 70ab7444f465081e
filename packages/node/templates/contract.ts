/** A named starting point for sandboxes, as the ledger has it. */
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

export interface TemplateService {
  list(): readonly Template[];
  /** By id, alias, `alias:default` or `namespace/alias`. @throws AenvError `template_not_found` */
  resolve(reference: string): Template;
  /** Counts a start, for the API's `spawnCount` and `lastSpawnedAt`. */
  recordSpawn(templateId: string): void;
}
