import { ControlPlane } from './control-plane.ts';
import { EnvdClient } from './envd.ts';
import type { SettingsFlags } from './settings.ts';
import { resolveSettings } from './settings.ts';

/** A control plane from the global flags and the environment. */
export async function openControlPlane(flags: SettingsFlags): Promise<ControlPlane> {
  return new ControlPlane(await resolveSettings(flags, process.env));
}

/** The daemon inside a sandbox; asks the control plane for its token. */
export async function openEnvd(api: ControlPlane, sandboxId: string, user?: string): Promise<EnvdClient> {
  return new EnvdClient(api.settings.url, await api.get(sandboxId), user);
}
