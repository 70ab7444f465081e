import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { SnapshotManifest } from '../../contract.ts';
import { corrupt } from '../corrupt.ts';
import { fromStored, MANIFEST_VERSION, toStored } from './schema.ts';

const FORMAT = 'aenv-snapshot';

/** What all versions have in common. */
const Envelope = z.strictObject({
  format: z.literal(FORMAT),
  version: z.int().positive(),
  /** sha256 of version and snapshot as JSON */
  checksum: z.string(),
  snapshot: z.unknown(),
});

/** The text of a manifest's file. */
export function manifestText(manifest: SnapshotManifest): string {
  return envelopeText(MANIFEST_VERSION, toStored(manifest));
}

export function envelopeText(version: number, snapshot: unknown): string {
  const checksum = createHash('sha256')
    .update(JSON.stringify([version, snapshot]))
    .digest('hex');
  return `${JSON.stringify({ format: FORMAT, version, checksum, snapshot })}\n`;
}

/**
 * @param id of the snapshot that it must be of
 * @throws AenvError `snapshot_corrupt`, also for a single byte that is not as it was written; `snapshot_unsupported`
 */
export function parseManifest(text: string, id: string): SnapshotManifest {
  const artefact = `manifest of snapshot ${id}`;
  const envelope = Envelope.safeParse(parseJson(text));
  if (!envelope.success) throw corrupt(artefact, 'it does not have the form of one', envelope.error);
  const { version, snapshot } = envelope.data;
  if (envelopeText(version, snapshot) !== text) throw corrupt(artefact, 'its checksum does not hold');
  if (version > MANIFEST_VERSION) {
    throw new AenvError('snapshot_unsupported', `snapshot ${id} has version ${version}, known is ${MANIFEST_VERSION}`);
  }
  let manifest: SnapshotManifest;
  try {
    manifest = fromStored(snapshot);
  } catch (error) {
    throw corrupt(artefact, 'it does not have the form of one', error);
  }
  if (manifest.id !== id) throw corrupt(artefact, `it is that of snapshot ${manifest.id}`);
  return manifest;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
