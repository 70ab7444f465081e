/**
 * The steps of the lifecycle at which an end of the daemon, the block daemon or the VM leaves most to get wrong, in the
 * order of each operation. `KIND.machine_stopped` and the two after it are steps of a capture of that kind; `pause_disk` is a
 * pause that keeps the disks alone, `warm` how a machine comes to stand ready and becomes a sandbox, and `comeback` the resume
 * of a sandbox that only a shutdown has paused.
 */
export const LIFECYCLE_POINTS = [
  'create.row_written',
  'create.guest_answered',
  'create.row_running',
  'pause.row_pausing',
  'pause.machine_stopped',
  'pause.memory_captured',
  'pause.disk_taken',
  'pause.durable',
  'pause.row_paused',
  'pause.released',
  'pause_disk.synced',
  'pause_disk.machine_stopped',
  'pause_disk.disk_taken',
  'pause_disk.durable',
  'pause_disk.row_paused',
  'pause_disk.released',
  'resume.row_resuming',
  'resume.guest_answered',
  'resume.row_running',
  'resume.checkpoint_removed',
  'snapshot.machine_stopped',
  'snapshot.memory_captured',
  'snapshot.disk_taken',
  'snapshot.durable',
  'snapshot.row_written',
  'fork.machine_stopped',
  'fork.memory_captured',
  'fork.disk_taken',
  'fork.captured',
  'fork.child_written',
  'fork.child_answered',
  'fork.child_running',
  'fork.checkpoint_removed',
  'warm.parts_taken',
  'warm.machine_restored',
  'warm.guest_used',
  'warm.stands',
  'warm.taken',
  'warm.goes_on',
  'comeback.row_resuming',
  'comeback.guest_answered',
  'comeback.row_running',
  'comeback.checkpoint_removed',
  'template.machine_stopped',
  'template.memory_captured',
  'template.disk_taken',
  'template.committed',
  'template.published',
] as const;

export type LifecyclePoint = (typeof LIFECYCLE_POINTS)[number];

/** Where tests end one of the processes. Nothing happens there in the product. */
export interface LifecycleFaults {
  hit(point: LifecyclePoint): void | Promise<void>;
}

export const noLifecycleFaults: LifecycleFaults = { hit() {} };
