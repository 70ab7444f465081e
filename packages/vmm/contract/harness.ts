import type { MicroVm, VmDriver, VmRecord, VmSpec } from './micro-vm.ts';

/** What the contract suite needs of a VMM, to be run against it. */
export interface ContractHarness {
  readonly patience: Patience;
  /** A driver as a daemon has it after its start. VMs of an earlier one run on. */
  openDriver(): Promise<VmDriver>;
  /** A spec whose guest comes up, with an incarnation and a slot that no other has. */
  makeSpec(): Promise<VmSpec>;
  /** A connection to the guest as the host has it, through the slot of the spec. */
  dial(spec: VmSpec): Promise<GuestConnection>;
  /** Ends the VM behind the driver's back. */
  crash(vm: MicroVm): Promise<void>;
  /** Whether the process of a VM still exists. */
  processExists(record: VmRecord): Promise<boolean>;
  /** Removes everything that the harness and forgotten VMs hold. */
  close(): Promise<void>;
}

export interface GuestConnection {
  /** Whether the guest answers a request on this connection within `ms`. */
  asks(ms: number): Promise<boolean>;
  /** Whether the guest takes a new connection and answers on it within `ms`. */
  asksAnew(ms: number): Promise<boolean>;
  close(): Promise<void>;
}

/** How long the suite waits, in `ms`: a fake needs no time, a microVM on a busy machine a lot. */
export interface Patience {
  /** from the start of a VM until its guest answers, at most */
  readonly boot: number;
  /** until the end of a VM is reported, at most */
  readonly end: number;
  /** silence that counts as no answer */
  readonly silence: number;
}
