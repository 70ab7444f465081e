/** What an orderly end of the daemon did with its sandboxes. */
export interface ShutdownReport {
  /** ids of those that run again at the next start */
  readonly paused: readonly string[];
  /** ids of those that are over, those in `failures` among them */
  readonly ended: readonly string[];
  /** those that were to be paused and could not be, and are over */
  readonly failures: readonly { readonly sandboxId: string; readonly reason: string }[];
  /** ids of those that were not done when time was up; the next start finds them */
  readonly left: readonly string[];
}
