import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { GuestAssets } from '@aenv/guest/contract.ts';
import type { DiskImage } from '@aenv/images/convert/from-layout.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { QemuInstall } from '@aenv/vmm/qemu/install/qemu-install.ts';
import { imageRecordPath } from '../assets/images/image-record.ts';
import { assetPlaces } from '../assets/places.ts';
import type { Config } from '../config/schema.ts';
import type { Template } from '../templates/contract.ts';
import { layerFiles } from '../templates/layers.ts';

/** Everything that is built once and cached. */
export interface Assets {
  readonly qemu: QemuInstall;
  readonly guest: GuestAssets;
  readonly base: DiskImage & { readonly layoutDir: string };
}

/** Files of these assets that a home with this version goes on using. */
export function filesOfAssets({ qemu, guest, base }: Assets): readonly string[] {
  const { kernel, initramfs, tools, native } = guest;
  const layers = base.layers.map(({ path }) => path);
  return [qemu.system, kernel.path, initramfs.path, tools.path, native.path, base.layoutDir, ...layers];
}

/**
 * What VMs boot, from the cache, or built where it is missing. The builders are loaded here and not at the top: a daemon
 * that finds everything in place carries no bundler and no package tools.
 */
export async function loadAssets(config: Config, log: Logger, signal: AbortSignal): Promise<Assets> {
  const options = { assetsDir: config.assets, log, signal };
  const failure = new AbortController();
  const cancellable = { ...options, signal: AbortSignal.any([signal, failure.signal]) };
  const parts = [
    loadQemu(config, cancellable),
    import('@aenv/guest/assets.ts').then(({ ensureGuestAssets }) => ensureGuestAssets(cancellable)),
    loadBase(cancellable),
  ] as const;
  for (const part of parts) part.catch((error: unknown) => failure.abort(error));
  // Only when all have let go of what they were doing is it safe to leave.
  await Promise.allSettled(parts);
  signal.throwIfAborted();
  failure.signal.throwIfAborted();
  const [qemu, guest, base] = await Promise.all(parts);
  return { qemu, guest, base };
}

interface AssetOptions {
  readonly assetsDir: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

async function loadQemu(config: Config, options: AssetOptions): Promise<QemuInstall> {
  const own = config.vmm.qemu;
  if (own === undefined) {
    const { ensureQemu } = await import('@aenv/vmm/qemu/install/ensure.ts');
    return ensureQemu(options);
  }
  const { findSystemQemu } = await import('@aenv/vmm/qemu/install/system.ts');
  const install = await findSystemQemu(dirname(own), options.signal);
  if (install?.system === own) return install;
  throw new AenvError('qemu_missing', `${own} (vmm.qemu) is no qemu-system-x86_64 that runs`, {
    remediation: 'Correct `vmm.qemu` (AENV_VMM_QEMU), or leave it out.',
  });
}

async function loadBase(options: AssetOptions): Promise<Assets['base']> {
  const { ensureBaseImage } = await import('@aenv/images/base/build.ts');
  const { convertLayout } = await import('@aenv/images/convert/from-layout.ts');
  const { layoutDir } = await ensureBaseImage(options);
  const disk = await convertLayout(layoutDir, { ...options, layersDir: layersOf(options.assetsDir) });
  return { ...disk, layoutDir };
}

/** Converted layers of images that are nobody's secret. */
export function layersOf(assetsDir: string): string {
  return assetPlaces(assetsDir).layers;
}

/** Files of assets that a template refers to, and the one that names its image. */
export function filesOfTemplate(
  { assets }: Pick<Config, 'assets'>,
  { source, diskSizeMb }: Template,
): readonly string[] {
  const image = imageRecordPath(assetPlaces(assets).images, { digest: source.imageDigest, diskSizeMb });
  return [...layerFiles(source), image];
}
