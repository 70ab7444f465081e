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
  /** layers of the disk, bottom first, as absolute paths of files that stay as long as the template does */
  readonly layers: readonly string[];
}

/** What envd is told before user code runs. */
export interface StartState {
  readonly envVars: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workdir: string;
}

export interface TemplateService {
  list(): readonly Template[];
  /** By id, alias, `alias:default` or `namespace/alias`. @throws AenvError `template_not_found` */
  resolve(reference: string): Template;
  /** Counts a start, for the API's `spawnCount` and `lastSpawnedAt`. */
  recordSpawn(templateId: string): void;
}
