import { ensureGuestAssets } from '@aenv/guest/assets.ts';
import { ensureRegistryProgram } from '@aenv/images/testing/debian-registry.ts';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { loadConfig } from '../../packages/node/config/load.ts';
import { prepareHost } from '../../packages/node/host/setup/prepare.ts';
import { Progress } from '../../packages/node/host/terminal/progress.ts';

/** Programs that tests compare with, and clients that others have written; tests/harness/guest-fio.ts takes fio, too. */
const PACKAGES = ['attr', 'umoci', 'fio', 'libnbd-bin', 'qemu-utils'];

/**
 * What the tests of virtual machines and rooms need besides: not while they run, since several do, and some look at what
 * apt changes on the host.
 */
export async function installTestPackages(signal: AbortSignal): Promise<void> {
  const progress = new Progress({ out: console.log, err: console.log });
  await progress.step('packages for tests', (log) => installPackages(PACKAGES, { log, signal }));
}

/**
 * What the suites need on this host, as `aenv up` sets it up: packages, QEMU, what virtual machines boot, the base image;
 * and a registry. It stays cached, so that only the first run on a machine takes minutes. Tells the tests where the native
 * program and the registry are.
 */
export async function prepareTests(signal: AbortSignal): Promise<void> {
  const config = loadConfig({ env: process.env });
  const progress = new Progress({ out: console.log, err: console.log });
  await prepareHost(config, progress, signal);
  const assets = await progress.step('native program', (log) =>
    ensureGuestAssets({ assetsDir: config.assets, log, signal }),
  );
  const registry = await progress.step('registry for tests', (log) =>
    ensureRegistryProgram({ assetsDir: config.assets, log, signal }),
  );
  process.env.AENV_ASSETS = config.assets;
  process.env.AENV_NATIVE = assets.native.path;
  process.env.AENV_TEST_REGISTRY = registry;
}
