import { run } from '@aenv/platform/process/run.ts';

/** A way to use a disk. */
export interface Workload {
  /** for the row's name */
  readonly name: string;
  readonly rw: 'read' | 'randread' | 'write' | 'randwrite';
  readonly blockSize: string;
  readonly depth: number;
}

export interface FioOptions {
  /** unix socket of an NBD server with one export, or one that is the default */
  readonly socket: string;
  readonly workload: Workload;
  /** size of the disk in bytes */
  readonly size: number;
  /** time to run; without it the whole disk, or `bytes` of it, is gone through once */
  readonly seconds?: number;
  readonly bytes?: number;
  readonly seed?: number;
  readonly signal: AbortSignal;
}

/** One run of fio(1) over its NBD engine. @returns operations a second */
export async function fio(options: FioOptions): Promise<number> {
  const { socket, workload, size, seconds, bytes, seed = 1, signal } = options;
  const argv = [
    ...['--name=bench', '--ioengine=nbd', `--uri=nbd+unix:///?socket=${socket}`, '--thread', '--output-format=json'],
    ...[`--rw=${workload.rw}`, `--bs=${workload.blockSize}`, `--iodepth=${workload.depth}`, `--randseed=${seed}`],
    ...[`--size=${size}`, ...(bytes === undefined ? [] : [`--io_size=${bytes}`])],
    ...(seconds === undefined ? [] : ['--time_based', `--runtime=${seconds}`]),
    // Contents that neither side can leave out.
    '--refill_buffers',
  ];
  const { stdout } = await run(['fio', ...argv], { signal, timeoutMs: 600_000, cwd: '/' });
  return parseFio(stdout, workload.rw.endsWith('write') ? 'write' : 'read');
}

/** Operations a second of fio's JSON. @throws Error when it is something else or tells of an error */
export function parseFio(text: string, direction: 'read' | 'write'): number {
  // The engine may print a line before it.
  const start = text.indexOf('{\n');
  const report = JSON.parse(text.slice(Math.max(0, start))) as {
    jobs?: { error?: number; read?: { iops?: number }; write?: { iops?: number } }[];
  };
  const job = report.jobs?.[0];
  const iops = job?.[direction]?.iops ?? 0;
  if (job?.error !== 0 || !(iops > 0)) throw new Error(`fio has not done its work: ${text.slice(0, 500)}`);
  return iops;
}
