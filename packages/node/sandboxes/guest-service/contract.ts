import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { ReadyCheck, StartCommand } from '../../templates/contract.ts';

/** What a booted guest begins with before its sandbox counts as running. */
export interface GuestService {
  readonly startCommand?: StartCommand;
  readonly ready?: ReadyCheck;
  readonly workdir: string;
  /** clients' token of envd, where it asks for one */
  readonly accessToken?: string;
}

export interface ServiceRequest {
  readonly service: GuestService;
  readonly vm: Pick<MicroVm, 'exited'>;
  /** address of the guest as the host dials it */
  readonly address: string;
  readonly signal: AbortSignal;
}

/**
 * Runs the start command, which stays, and waits until the guest is ready.
 * @throws AenvError `start_command_failed` with its last output when it fails, or when the guest is not ready in time;
 *   `vm_died`; the signal's reason
 */
export type StartService = (request: ServiceRequest) => Promise<void>;
