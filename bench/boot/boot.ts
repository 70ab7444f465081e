import type { Bench, Measurement, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { median, round, summarise } from '../sampling/statistics.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { type BareBoot, bareBoot } from './bare-boot.ts';
import { BareGuest } from './bare-guest.ts';
import { type GuestMarks, guestMarks } from './guest-marks.ts';

const ROUNDS = 15;

interface EnvdBoot {
  /** from the order to start a VM to envd's first 204, as the daemon timed it */
  readonly envd: number;
  readonly marks: GuestMarks;
}

/** How far the product is from the least that a kernel and a runtime take on this machine. */
export const boot: Measurement = {
  name: 'boot',
  about: 'boot to envd’s first answer, over a bare boot and a bare start of the same runtime',
  limitMs: 15 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon(false);
    await using guest = await BareGuest.create(bench.host);
    const envdBoot = async (): Promise<EnvdBoot> => {
      await using sandbox = await createSandbox(daemon);
      const { vm, settle } = await sandbox.phases();
      if (vm === undefined || settle === undefined) throw new Error('the daemon does not tell how long a boot took');
      return { envd: vm - settle, marks: await guestMarks(daemon, sandbox.id) };
    };
    const { a, b } = await interleave(
      bench,
      bench.rounds(ROUNDS),
      envdBoot,
      () => bareBoot(bench.host, guest, bench.signal),
      (ours, bare) =>
        `envd ${ours.envd.toFixed(0)} ms, bare init ${bare.init.toFixed(0)} ms, runtime ${bare.runtime.toFixed(0)} ms`,
    );
    return rows(bench, a, b);
  },
};

function rows(bench: Bench, ours: readonly EnvdBoot[], bare: readonly BareBoot[]): Row[] {
  const envd = ours.map((sample) => sample.envd);
  const init = bare.map((sample) => sample.init);
  const runtime = bare.map((sample) => sample.runtime);
  const both = bare.map((sample) => sample.answered);
  return [
    ratioRow(
      'boot/envd over bare boot and runtime',
      { envd, bare: both },
      { atMost: 1.25 },
      {
        bareInit: summarise(init),
        bareRuntime: summarise(runtime),
        note: `series in ms; bare: the same kernel, QEMU and memory, ${bench.host.facts.node.split('.')[0]} with a trivial server, from the start of QEMU to its answer`,
      },
    ),
    ratioRow('boot/envd over bare boot to init', { envd, bare: init }),
    seriesRow('boot/envd', envd, 'ms', undefined, { guest: guestParts(ours) }),
  ];
}

/** Medians of what the guests said of themselves. */
function guestParts(ours: readonly EnvdBoot[]): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const key of ['kernelToEnvdStart', 'envdStartToListening'] as const) {
    const values = ours.flatMap(({ marks }) => marks[key] ?? []);
    if (values.length > 0) parts[key] = round(median(values));
  }
  return parts;
}
