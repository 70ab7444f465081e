/** The steps of the repository at which a fault leaves most to get wrong, in the order of a commit, then of the rest. */
export const FAULT_POINTS = [
  'snapshot.begin.folder_made',
  'snapshot.capture.streaming',
  'snapshot.commit.delta_synced',
  'snapshot.commit.chunk_put',
  'snapshot.commit.base_file_written',
  'snapshot.commit.base_saved',
  'snapshot.commit.manifest_written',
  'snapshot.commit.before_rename',
  'snapshot.commit.after_rename',
  'snapshot.merge.before_rename',
  'snapshot.merge.after_rename',
  'snapshot.remove.before_unlink',
  'snapshot.remove.after_unlink',
  'snapshot.materialise.before_rename',
  'snapshot.gc.base_removed',
  'snapshot.gc.chunk_removed',
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

/** Where tests end the process, or fail a step. Nothing happens there in the product. */
export interface Faults {
  hit(point: FaultPoint): void | Promise<void>;
}

export const noFaults: Faults = { hit() {} };
