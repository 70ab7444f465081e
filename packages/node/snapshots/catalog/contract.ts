import type {
  SnapshotName,
  SnapshotPage,
  SnapshotQuery,
  SnapshotRecord,
  SnapshotUsage,
} from '../../store/snapshot-record.ts';
import type { SnapshotVerification } from '../contract.ts';

/** The snapshots of this node by the references that clients know them by. */
export interface SnapshotCatalog {
  /** By id or `id:default`, by `name[:tag]` or `namespace/name[:tag]`. @throws AenvError `invalid_request` */
  find(reference: string): SnapshotRecord | undefined;
  /** @throws AenvError `invalid_request`, `snapshot_not_found` */
  get(reference: string): SnapshotRecord;
  /** @throws AenvError `invalid_request` for a bad token */
  list(query: SnapshotQuery): SnapshotPage;
  /**
   * Whether a snapshot may get this name; whether it is taken by another snapshot does not matter.
   * @throws AenvError `invalid_request` for one that a template has
   */
  requireFree(name: SnapshotName): void;
  /** What all of them are together. */
  usage(): SnapshotUsage;
  /** Makes a snapshot known whose machine is on the disk. Its name moves to it. */
  add(snapshot: SnapshotRecord): void;
  /**
   * Removes a snapshot that no sandbox uses.
   * @returns false when there is none
   * @throws AenvError `snapshot_in_use` with the ids of the sandboxes
   */
  remove(reference: string): Promise<boolean>;
  /** Reads every byte of it. @throws AenvError `invalid_request`, `snapshot_not_found` */
  verify(reference: string): Promise<SnapshotVerification>;
}

/** How a snapshot is shown, and referred to: by its name, or by its id where it has none. */
export function referenceTo(
  { templateId, name }: Pick<SnapshotRecord, 'templateId' | 'name'>,
  namespace: string,
): string {
  return name === undefined ? `${templateId}:default` : `${namespace}/${name.alias}:${name.tag}`;
}
