import type { HostFacts, SnapshotFacts } from '../../contract.ts';

/** Parts per million by which two measurements of one clock differ at most; processors differ by far more. */
const TSC_TOLERANCE = 1000;
const SHOWN_FLAGS = 8;

type Captured = Pick<SnapshotFacts, 'vmm' | 'cpu'>;

/**
 * Why a host cannot run a snapshot, undefined if it can. The state of devices is only read by the build that wrote it;
 * with hardware virtualisation the guest has seen the processor itself, and its programs have chosen by its features.
 */
export function incompatibility(snapshot: Captured, host: HostFacts): string | undefined {
  const { kind, build } = snapshot.vmm;
  const differences = [
    different('VMM', kind, host.kind),
    different(`version of ${kind}`, build.version, host.build.version),
    different('accelerator', build.accelerator, host.build.accelerator),
    different('machine', build.machine, host.build.machine),
    ...(build.accelerator === 'kvm' ? processor(snapshot, host) : []),
    // Under emulation, too, the guest's TSC is that of the host, and its rate is what the guest keeps time by.
    build.accelerator === 'none' ? undefined : tscRate(snapshot.cpu.tscKhz, host.cpu.tscKhz),
  ].filter((difference) => difference !== undefined);
  return differences.length === 0 ? undefined : differences.join('; ');
}

function processor(snapshot: Captured, host: HostFacts): (string | undefined)[] {
  const here = new Set(host.cpu.flags);
  const missing = snapshot.cpu.flags.filter((flag) => !here.has(flag));
  const more = missing.length > SHOWN_FLAGS ? ` and ${missing.length - SHOWN_FLAGS} more` : '';
  return [
    different('processor', snapshot.cpu.model, host.cpu.model),
    missing.length === 0
      ? undefined
      : `this processor lacks the features ${missing.slice(0, SHOWN_FLAGS).join(', ')}${more}`,
  ];
}

function tscRate(then: number | undefined, now: number | undefined): string | undefined {
  if (then === undefined) return undefined;
  if (now === undefined) return `its TSC ran at ${then} kHz, and this host has none`;
  if (Math.abs(then - now) <= (then * TSC_TOLERANCE) / 1e6) return undefined;
  return `its TSC ran at ${then} kHz, that of this host runs at ${now} kHz`;
}

function different(what: string, then: string, now: string): string | undefined {
  return then === now ? undefined : `the ${what} was ${then}, here it is ${now}`;
}
