import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { RawImageConfig } from './schemas.ts';

/** What an image says about how its processes start. Absent settings are empty. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  /** absolute, or empty */
  readonly workingDir: string;
  /** `name`, `uid`, with an optional `:group`, or empty */
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  /** `port/protocol` */
  readonly exposedPorts: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** @throws AenvError `image_invalid` for variables without a name or values that no process can get */
export function toImageConfig(raw: RawImageConfig): ImageConfig {
  const config = raw.config ?? {};
  const env = new Map<string, string>();
  for (const line of config.Env ?? []) {
    const equals = line.indexOf('=');
    // A name without a value takes nothing from anywhere here, and containers ignore it as well.
    if (equals === -1) continue;
    const name = line.slice(0, equals);
    if (name === '' || line.includes('\0')) {
      throw new AenvError('image_invalid', `config: bad variable ${JSON.stringify(line.slice(0, 100))}`);
    }
    env.set(name, line.slice(equals + 1));
  }
  const workingDir = config.WorkingDir ?? '';
  if (workingDir.includes('\0')) throw new AenvError('image_invalid', 'config: bad WorkingDir');
  return {
    env: Object.fromEntries(env),
    workingDir: workingDir === '' || workingDir.startsWith('/') ? workingDir : `/${workingDir}`,
    user: config.User ?? '',
    entrypoint: config.Entrypoint ?? [],
    cmd: config.Cmd ?? [],
    exposedPorts: Object.keys(config.ExposedPorts ?? {}),
    labels: config.Labels ?? {},
  };
}
