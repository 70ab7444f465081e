import { readFile } from 'node:fs/promises';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { round } from '../sampling/statistics.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { type BenchSandbox, createSandbox } from '../sandboxes/sandbox.ts';

const SANDBOXES = 6;
const BATCHES = 4;
const BATCH = 5;
const SHELL = ['/bin/sh', ['-c', 'echo ok']] as const;
const LOOP = '/tmp/spawn-loop';

interface Series {
  readonly first: number[];
  readonly warm: number[];
  /** the same shell started by a loop of C inside, which is as fast as this guest can */
  readonly bare: number[];
}

/** What a user waits for who runs one command after another. */
export const commands: Measurement = {
  name: 'commands',
  about: 'first byte of `echo ok`, in a fresh and in a warm sandbox, over a bare process in the guest',
  limitMs: 10 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    const series: Series = { first: [], warm: [], bare: [] };
    const sandboxes = bench.rounds(SANDBOXES);
    const program = await readFile(bench.host.programs.spawnLoop);
    for (let number = 1; number <= sandboxes; number++) {
      await using sandbox = await createSandbox(daemon);
      await measure(bench, daemon, sandbox, program, series);
      bench.say(`${number}/${sandboxes}: first ${series.first.at(-1)?.toFixed(1)} ms`);
    }
    const { first, warm, bare } = series;
    // A spawn from the runtime itself takes about four bare ones in an emulated guest; twice that with the way to it.
    const note = 'series in ms; the goal is our own';
    return [
      ratioRow('commands/first command over bare process', { first, bare }, undefined, { note: 'series in ms' }),
      ratioRow('commands/warm command over bare process', { warm, bare }, { atMost: 8 }, { note }),
      seriesRow('commands/first command', first, 'ms'),
      seriesRow('commands/warm command', warm, 'ms'),
    ];
  },
};

async function measure(
  bench: Bench,
  daemon: TestDaemon,
  sandbox: BenchSandbox,
  program: Uint8Array,
  { first, warm, bare }: Series,
): Promise<void> {
  // Nothing else may be asked of this sandbox before.
  first.push((await runCommand(daemon, sandbox, ...SHELL)).firstByteMs);
  await uploadProgram(daemon, sandbox, LOOP, program);
  await loop(daemon, sandbox, 1);
  for (let batch = 0; batch < BATCHES; batch++) {
    for (let n = 0; n < BATCH; n++) {
      bench.signal.throwIfAborted();
      warm.push((await runCommand(daemon, sandbox, ...SHELL)).firstByteMs);
    }
    bare.push(...(await loop(daemon, sandbox, BATCH)));
  }
}

/** `ms` of each of several processes started inside. */
async function loop(daemon: TestDaemon, sandbox: BenchSandbox, count: number): Promise<number[]> {
  const [file, args] = SHELL;
  const { stdout } = await runCommand(daemon, sandbox, LOOP, [String(count), file, ...args]);
  const lines = stdout.trim().split('\n');
  if (lines.length !== count) throw new Error(`the loop in the guest told ${lines.length} of ${count} times`);
  return lines.map((line) => round(Number(line) / 1000));
}
