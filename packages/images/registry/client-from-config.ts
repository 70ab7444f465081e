import { systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { RegistryClient } from './client.ts';
import { DockerCredentials, dockerConfigFile } from './credentials/docker-credentials.ts';
import { type RegistryConfig, registrySettings } from './settings.ts';

/** The section `registry` of the configuration, as far as it is about reading from registries. */
export interface RegistryClientConfig extends RegistryConfig {
  /** path of Docker's config.json; absent: where Docker has it */
  readonly dockerConfig?: string | undefined;
}

/** @throws AenvError `config_invalid`, naming the key and the entry */
export function registryClientFrom(config: RegistryClientConfig, log: Logger): RegistryClient {
  const file = config.dockerConfig ?? dockerConfigFile();
  return new RegistryClient({
    settings: registrySettings(config),
    credentials: new DockerCredentials({ file, clock: systemClock, log }),
    log,
  });
}
