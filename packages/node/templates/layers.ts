import type { RemoteLayer } from '@aenv/block/contract.ts';
import { remoteLayerOf } from '@aenv/images/lazy/remote-layer.ts';
import type { TemplateLayer, TemplateSource } from './contract.ts';

export function localLayers(paths: readonly string[]): readonly TemplateLayer[] {
  return paths.map((path) => ({ kind: 'file', path }));
}

/** The layers as disks are made from them. */
export function diskLayers({ layers }: Pick<TemplateSource, 'layers'>): readonly (string | RemoteLayer)[] {
  return layers.map((layer) => (layer.kind === 'file' ? layer.path : remoteLayerOf(layer)));
}

/** The files among the layers: what must stay on this host. */
export function layerFiles({ layers }: Pick<TemplateSource, 'layers'>): readonly string[] {
  return layers.flatMap((layer) => (layer.kind === 'file' ? [layer.path] : []));
}
