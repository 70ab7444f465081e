import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { BareMachines } from '../bare/bare-machines.ts';
import { letGo, runDirectly } from '../bare/guest-calls.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { runCommand } from '../sandboxes/envd.ts';
import { createSandbox, logLine } from '../sandboxes/sandbox.ts';

const ROUNDS = 6;
const MIB = 2 ** 20;
/** After the command, before it counts as idle. */
const REST_MS = 500;
const SHELL = ['/bin/sh', ['-c', 'echo ok']] as const;

interface Pause {
  readonly apiMs: number;
  readonly phases: Readonly<Record<string, number>>;
  /** that it takes on the disk */
  readonly bytes: number;
}

interface BareSave {
  /** stop, state of the devices, and a file with as many bytes as the pause kept, synced */
  readonly leastMs: number;
  /** stop, and all of the machine as QEMU saves it, synced */
  readonly allMs: number;
  readonly allBytes: number;
}

/** A pause of a sandbox that has done something and does nothing, as the API answers it. */
export async function idleRows(bench: Bench, daemon: TestDaemon, bare: BareMachines): Promise<Row[]> {
  let kept = 0;
  const { a, b } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    async () => {
      const sample = await pauseIdle(bench, daemon);
      kept = sample.bytes;
      return sample;
    },
    () => saveBare(bench, bare, kept),
    (ours, { leastMs, allMs }) =>
      `pause ${ours.apiMs.toFixed(0)} ms, bare save ${allMs.toFixed(0)} ms, least ${leastMs.toFixed(0)} ms`,
  );
  const api = a.map(({ apiMs }) => apiMs);
  const bytes = new PhaseSeries(
    a.map((ours, at) => ({ ours: ours.bytes / MIB, bare: (b[at]?.allBytes ?? 0) / MIB })),
  ).medians();
  return [
    ratioRow('pause/idle, over bare stop and save', { pause: api, bare: b.map(({ allMs }) => allMs) }, undefined, {
      mib: bytes,
      note: 'series in ms; bare: stop, and QEMU migrates the machine with all of its memory to a file, synced',
    }),
    ratioRow('pause/idle, over the least', { pause: api, least: b.map(({ leastMs }) => leastMs) }, undefined, {
      note: 'series in ms; least: stop, state of the devices, and a file of as many bytes as the pause kept, synced',
    }),
    seriesRow('pause/idle', api, 'ms', undefined, { phases: new PhaseSeries(a.map(({ phases }) => phases)).medians() }),
  ];
}

async function pauseIdle(bench: Bench, daemon: TestDaemon): Promise<Pause> {
  await using sandbox = await createSandbox(daemon);
  await runCommand(daemon, sandbox, ...SHELL);
  await delay(REST_MS, undefined, { signal: bench.signal });
  const begin = performance.now();
  const { status } = await daemon.api('POST', `/sandboxes/${sandbox.id}/pause`);
  const apiMs = performance.now() - begin;
  if (status !== 204) throw new Error(`pause was answered with ${status}`);
  const { ms: phases, bytes = 0 } = await logLine(daemon, 'sandbox paused', sandbox.id);
  return { apiMs, phases, bytes };
}

async function saveBare(bench: Bench, bare: BareMachines, bytes: number): Promise<BareSave> {
  const [place] = bare.places;
  if (place === undefined) throw new Error('there is no place for a bare machine');
  await bare.clear(place);
  await using machine = await bare.start(place);
  await letGo(machine.address, bare.machine.hostSecret, bench.signal);
  await runDirectly(machine.address, ...SHELL);
  await delay(REST_MS, undefined, { signal: bench.signal });
  const content = Buffer.alloc(MIB, 'content');
  const begin = performance.now();
  await machine.stop();
  const stopMs = performance.now() - begin;
  await machine.saveDevices(join(place.folder, 'devices'));
  await using file = await open(join(place.folder, 'bytes'), 'w');
  for (let done = 0; done < bytes; done += MIB) await file.write(content, 0, Math.min(MIB, bytes - done));
  await file.sync();
  const leastMs = performance.now() - begin;
  const path = join(place.folder, 'all');
  const begun = performance.now();
  await machine.saveAll(path);
  await using all = await open(path, 'r+');
  await all.sync();
  return { leastMs, allMs: stopMs + performance.now() - begun, allBytes: (await stat(path)).size };
}
