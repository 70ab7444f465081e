/** How the VM of a sandbox has ended. */
export interface VmEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly lastLines: string;
}

/** For people and the ledger. */
export function howVmEnded({ code, signal, lastLines }: VmEnd): string {
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return `the VM process ended ${how}: ${lastLines}`;
}
