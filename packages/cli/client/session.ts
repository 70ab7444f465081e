import { ControlPlane, type SandboxInfo } from './control-plane.ts';
import type { EnvdClient } from './envd.ts';
import type { SettingsFlags } from './settings.ts';
import { resolveSettings } from './settings.ts';

/** A control plane from the global flags and the environment. */
export async function openControlPlane(flags: SettingsFlags): Promise<ControlPlane> {
  return new ControlPlane(await resolveSettings(flags, process.env));
}

/**
 * The daemon inside a sandbox; for an id, asks the control plane for its token. The libraries that speak to it take longer to
 * load than most commands to run, so they come when they are needed.
 */
export async function openEnvd(api: ControlPlane, sandbox: string | SandboxInfo, user?: string): Promise<EnvdClient> {
  const { EnvdClient } = await import('./envd.ts');
  return new EnvdClient(api.settings.url, typeof sandbox === 'string' ? await api.get(sandbox) : sandbox, user);
}
