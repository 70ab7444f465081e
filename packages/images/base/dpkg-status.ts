import { decompress } from '../layers/decompress.ts';
import { readOciLayout } from '../oci/layout.ts';
import { readTar } from '../tar/reader.ts';

const STATUS = /^(?:\.?\/)?var\/lib\/dpkg\/status$/;

/**
 * Names of the packages that an image of one Debian layer has installed.
 * @param layoutDir OCI image layout folder
 */
export async function installedPackages(layoutDir: string, signal?: AbortSignal): Promise<ReadonlySet<string>> {
  const { layers } = await readOciLayout(layoutDir, { signal });
  for (const layer of layers.toReversed()) {
    for await (const member of readTar(decompress(layer.open(signal)))) {
      if (!STATUS.test(member.entry.name)) continue;
      const chunks: Buffer[] = [];
      for await (const chunk of member.content()) chunks.push(chunk);
      return parseStatus(Buffer.concat(chunks).toString());
    }
  }
  return new Set();
}

/** Stanzas of dpkg's status file (dpkg(1)); only packages that are fully installed count. */
export function parseStatus(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const stanza of text.split(/\n{2,}/)) {
    const name = /^Package: (\S+)$/m.exec(stanza)?.[1];
    if (name !== undefined && /^Status: \S+ \S+ installed$/m.test(stanza)) names.add(name);
  }
  return names;
}
