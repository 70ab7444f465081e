/**
 * A network slot: all that one microVM needs of the host's network, made before the sandbox asks. Plain data, so that
 * the network room gives it and the VMM room takes it without knowing one another.
 */
export interface NetworkSlot {
  readonly index: number;
  /** absolute path of the network namespace that the VM process runs in */
  readonly netns: string;
  /** tap device inside that namespace */
  readonly tap: string;
  /** address that the host dials to reach the guest, unique on this host */
  readonly hostAddress: string;
  /** uid and gid that the VM process runs as and that own the tap; no account is made for it */
  readonly uid: number;
}
