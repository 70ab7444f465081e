import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { ApiError, type ControlPlane, type LogInfo, type MetricInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { chooseFormat, type OutputFormat, printList } from '../output/format.ts';
import { printable } from '../output/table.ts';
import { globalFlags, outputOption } from './options.ts';

const FOLLOW_MS = 1_000;
const MIB = 2 ** 20;

/** `logs`, `metrics`. */
export function registerObservation(program: Command): void {
  program
    .command('logs')
    .summary('show what has happened to a sandbox and in it')
    .argument('<id>', 'id of the sandbox; for a while also of one that is over')
    .option('-f, --follow', 'go on until the sandbox is over')
    .addOption(new Option('--level <level>', 'least level').choices(['debug', 'info', 'warn', 'error']).default('info'))
    .addOption(outputOption())
    .action(async (id: string, flags: LogFlags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      // Lines in a pipe as well: a log is read by line, and JSON is one object on each.
      const format = chooseFormat(flags.output ?? 'table', true);
      let next = await printFrom(api, id, 0, flags.level, format);
      while (flags.follow) {
        const over = await isOver(api, id);
        // Asked after the state: what was written before the end is shown.
        next = await printFrom(api, id, next, flags.level, format);
        if (over) return;
        await delay(FOLLOW_MS);
      }
    });

  program
    .command('metrics')
    .summary('show the load of a sandbox over time')
    .argument('<id>', 'id of the sandbox')
    .addOption(outputOption())
    .action(async (id: string, flags: { output?: string }, command: Command) => {
      printList(await (await openControlPlane(globalFlags(command))).metrics(id), METRICS, flags.output);
    });
}

interface LogFlags {
  readonly follow?: boolean;
  readonly level: string;
  readonly output?: string;
}

/** Prints everything from a moment on and returns the moment to go on from. */
async function printFrom(
  api: ControlPlane,
  id: string,
  from: number,
  level: string,
  format: OutputFormat,
): Promise<number> {
  let next = from;
  for (;;) {
    const entries = await api.logs(id, next, level);
    const last = entries.at(-1);
    if (last === undefined) return next;
    for (const entry of entries) console.log(format === 'json' ? JSON.stringify(entry) : line(entry));
    next = Date.parse(last.timestamp) + 1;
  }
}

function line({ timestamp, level, message, fields }: LogInfo): string {
  return printable(`${timestamp} ${level.toUpperCase().padEnd(5)} ${(fields.logger ?? '').padEnd(9)} ${message}`);
}

async function isOver(api: ControlPlane, id: string): Promise<boolean> {
  try {
    await api.get(id);
    return false;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return true;
    throw error;
  }
}

const mebibytes = (used: number, total: number) => `${Math.round(used / MIB)} / ${Math.round(total / MIB)} MiB`;

const METRICS = {
  head: ['TIME', 'CPU', 'MEMORY', 'DISK'],
  row: (metric: MetricInfo) => [
    metric.timestamp,
    `${metric.cpuUsedPct.toFixed(1)} % of ${metric.cpuCount}`,
    mebibytes(metric.memUsed, metric.memTotal),
    mebibytes(metric.diskUsed, metric.diskTotal),
  ],
};
