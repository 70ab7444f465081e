import { createHash } from 'node:crypto';
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CODE_INTERPRETER, INTERPRETER_FOLDER, interpreterPackages } from '@aenv/code-interpreter/contract.ts';
import { interpreterFiles } from '@aenv/code-interpreter/files.ts';
import { CONFIG, EPOCH, ensureBaseImage } from '@aenv/images/base/build.ts';
import { layDebs } from '@aenv/images/base/deb-tree.ts';
import { ensureDerivedImage } from '@aenv/images/base/derived-image.ts';
import { installedPackages } from '@aenv/images/base/dpkg-status.ts';
import { layerAsset } from '@aenv/images/base/layer-asset.ts';
import { compilePython } from '@aenv/images/base/python.ts';
import { convertLayout } from '@aenv/images/convert/from-layout.ts';
import type { LayerBlob } from '@aenv/images/oci/write-layout.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { StartState, TemplateSource } from '../contract.ts';
import { localLayers } from '../layers.ts';
import type { BuildOptions } from './contract.ts';

const STRIP_TIMEOUT_MS = 5 * 60_000;

/**
 * The template of `@e2b/code-interpreter`: the base image, Python packages of Debian, Node for cells in JavaScript, and
 * the interpreter on top, each a layer that is kept. The first time takes a minute, most of it downloads.
 * @throws AenvError `host_command_failed`, `host_unsupported`, `no_space`, `asset_failed`; the signal's reason
 */
export async function buildCodeInterpreter(
  options: BuildOptions,
): Promise<{ readonly source: TemplateSource; readonly start: StartState }> {
  const { assetsDir, signal } = options;
  const base = await ensureBaseImage(options);
  const layers = [await packagesLayer(base, options), await nodeLayer(options), await interpreterLayer(options)];
  const { port, healthPath, warmPath, startCmd, startUser, alias } = CODE_INTERPRETER;
  const image = await ensureDerivedImage({
    ...{ assetsDir, baseDir: base.layoutDir, layers, epoch: EPOCH, signal },
    config: { ...CONFIG, ExposedPorts: { [`${port}/tcp`]: {} } },
  });
  options.log.info('converting layers', { template: alias });
  const disk = await convertLayout(image.layoutDir, options);
  return {
    source: { imageDigest: disk.digest, layers: localLayers(disk.layers.map(({ path }) => path)) },
    start: {
      ...disk.start,
      startCommand: { cmd: startCmd, user: startUser },
      ready: { kind: 'http', port, path: healthPath, warmPath },
    },
  };
}

async function packagesLayer(base: { layoutDir: string; digest: string }, options: BuildOptions): Promise<LayerBlob> {
  const packages = interpreterPackages(await hostCodename());
  return layerAsset(
    { ...options, title: 'Python packages', inputs: { below: base.digest, packages }, epoch: EPOCH },
    async (root) => {
      const installed = await installedPackages(base.layoutDir, options.signal);
      await layDebs(root, { ...options, packages, installed, aptDir: join(options.assetsDir, 'apt'), epoch: EPOCH });
    },
  );
}

/** Cells get the Node that this daemon runs on, which the project pins; Debian's would be years older. */
async function nodeLayer(options: BuildOptions): Promise<LayerBlob> {
  const { version, arch, execPath } = process;
  const inputs = { node: version, arch, bytes: (await stat(execPath)).size };
  return layerAsset({ ...options, title: 'Node', inputs, epoch: EPOCH }, async (root) => {
    const folder = join(root, 'usr/bin');
    await mkdir(folder, { recursive: true });
    await run(['strip', '--strip-all', '-o', join(folder, 'node'), execPath], {
      timeoutMs: STRIP_TIMEOUT_MS,
      signal: options.signal,
    });
    await chmod(join(folder, 'node'), 0o755);
  });
}

async function interpreterLayer(options: BuildOptions): Promise<LayerBlob> {
  const files = await interpreterFiles();
  const hash = createHash('sha256');
  for (const { path, mode, content } of files) hash.update(`${path}\0${mode}\0${content.length}\0`).update(content);
  const inputs = { files: hash.digest('hex') };
  return layerAsset({ ...options, title: 'interpreter', inputs, epoch: EPOCH }, async (root) => {
    for (const { path, mode, content } of files) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
      // The mode of a new file would be cut by the umask.
      await chmod(join(root, path), mode);
    }
    await compilePython(root, join(root, INTERPRETER_FOLDER), EPOCH, options.signal);
  });
}
