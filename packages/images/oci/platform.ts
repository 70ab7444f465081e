/** Operating system and machine of an image, in Go's names as OCI uses them. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string | undefined;
}

/** The platform of guests on this host. */
export function hostPlatform(arch: string = process.arch): Platform {
  return { os: 'linux', architecture: arch === 'x64' ? 'amd64' : arch };
}

/** Variants that every machine of the architecture runs. */
const BASE_VARIANTS: Readonly<Record<string, readonly string[]>> = { amd64: ['v1'], arm64: ['v8'] };

export function runsOn(image: Platform, host: Platform): boolean {
  if (image.os !== host.os || image.architecture !== host.architecture) return false;
  const variant = image.variant ?? '';
  return variant === '' || variant === host.variant || (BASE_VARIANTS[image.architecture] ?? []).includes(variant);
}

export function platformName(platform: Platform): string {
  const parts = [platform.os, platform.architecture, platform.variant ?? ''];
  return parts.filter((part) => part !== '').join('/');
}
