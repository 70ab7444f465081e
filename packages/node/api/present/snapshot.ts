import type { Snapshot } from '@aenv/contracts/api/snapshot.ts';
import { referenceTo } from '../../snapshots/catalog/contract.ts';
import type { SnapshotRecord } from '../../store/snapshot-record.ts';
import { NAMESPACE } from './template.ts';

export function presentSnapshot(snapshot: SnapshotRecord): Snapshot {
  const reference = referenceTo(snapshot, NAMESPACE);
  return {
    snapshotID: reference,
    names: snapshot.name === undefined ? [] : [reference],
    templateID: snapshot.templateId,
    sandboxID: snapshot.sandboxId,
    createdAt: snapshot.createdAt.toISOString(),
    cpuCount: snapshot.cpuCount,
    memoryMB: snapshot.memoryMb,
    diskSizeMB: snapshot.diskSizeMb,
    envdVersion: snapshot.envdVersion,
  };
}
