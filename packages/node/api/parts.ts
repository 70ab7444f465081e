import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { KeyAdministration } from '../auth/api-keys.ts';
import type { KeyStore } from '../auth/key-store.ts';
import type { Config } from '../config/schema.ts';
import type { NodeMetrics } from '../observability/prometheus.ts';
import type { SandboxService } from '../sandboxes/contract.ts';
import type { SandboxObservations } from '../sandboxes/observe/contract.ts';
import type { SnapshotCatalog } from '../snapshots/catalog/contract.ts';
import type { StorageService } from '../storage/contract.ts';
import type { TemplateBuilds } from '../templates/builds/contract.ts';
import type { TemplateService } from '../templates/contract.ts';
import type { DriveImages } from '../templates/drives/contract.ts';
import type { ImageTemplates } from '../templates/pull/contract.ts';

/** The settings that the API follows. */
export interface ApiSettings {
  /** longest time to live, in seconds */
  readonly maxTimeoutSeconds: number;
  /** largest JSON body, in bytes */
  readonly jsonBodyBytes: number;
  /** what clients are told to put after `PORT-SANDBOXID.`; absent when no domain leads here */
  readonly domain?: string | undefined;
}

/** The settings of the API out of the node's configuration. */
export function apiSettings(config: Pick<Config, 'limits' | 'proxy'>): ApiSettings {
  return {
    maxTimeoutSeconds: config.limits.maxTimeoutSeconds,
    jsonBodyBytes: config.limits.jsonBodyBytes,
    domain: config.proxy.domains[0],
  };
}

/** What the API is made of. */
export interface ApiParts {
  readonly sandboxes: SandboxService;
  readonly templates: TemplateService;
  readonly snapshots: SnapshotCatalog;
  readonly builds: TemplateBuilds;
  readonly images: ImageTemplates;
  readonly storage: StorageService;
  readonly drives: DriveImages;
  readonly observations: SandboxObservations;
  readonly keys: KeyStore;
  readonly apiKeys: KeyAdministration;
  readonly settings: ApiSettings;
  readonly log: Logger;
  readonly metrics: NodeMetrics;
  /** version of the product */
  readonly version: string;
}
