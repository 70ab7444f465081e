import type { GuestEvent, GuestReport } from '@aenv/contracts/envd/host-api.ts';
import type { LoadSample, ObservedGuest } from './contract.ts';
import { EventLog, type NewEntry } from './event-log.ts';
import type { LoadSeries } from './load-series.ts';

/** All that is known of one sandbox beside its row. */
export class Observation {
  readonly log = new EventLog();
  /** while it runs */
  guest: RunningGuest | undefined;
  /**
   * Up to where its processes are told of. It outlasts a pause: the guest that goes on remembers what it has told before. To
   * one that was booted since, it means nothing.
   */
  cursor = '';

  /** Says something about it at a moment. */
  note(at: number, level: NewEntry['level'], message: string, fields?: Readonly<Record<string, string>>): void {
    this.log.add({ at, level, logger: 'lifecycle', message, ...(fields === undefined ? {} : { fields }) });
  }
}

/** Gives the lines of a console that have come since the last call. */
export interface ConsoleReader {
  read(): Promise<readonly string[]>;
}

/** The part that is dropped with the guest. */
export class RunningGuest {
  readonly guest: ObservedGuest;
  readonly series: LoadSeries;
  readonly #console: ConsoleReader;
  readonly #abort = new AbortController();

  constructor(guest: ObservedGuest, series: LoadSeries, console: ConsoleReader) {
    this.guest = guest;
    this.series = series;
    this.#console = console;
  }

  /** Aborts when the guest is no longer to be asked. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Takes a report in that came at `now`, together with what the console has said. */
  async take(report: GuestReport, now: number, observation: Observation): Promise<void> {
    const { log } = observation;
    observation.cursor = report.cursor;
    this.series.add(sampleOf(report, now));
    if (report.lost > 0) {
      const message = `${report.lost} begins and ends of processes were too many to be remembered`;
      log.add({ at: now, level: 'warn', logger: 'process', message });
    }
    for (const event of report.events) log.add(entryOf(event, now));
    for (const message of await this.#console.read()) log.add({ at: now, level: 'debug', logger: 'console', message });
  }
}

function sampleOf({ metrics }: GuestReport, at: number): LoadSample {
  return {
    at,
    cpuCount: metrics.cpu_count,
    cpuUsedPct: metrics.cpu_used_pct,
    memUsed: metrics.mem_used,
    memTotal: metrics.mem_total,
    memCache: metrics.mem_cache,
    diskUsed: metrics.disk_used,
    diskTotal: metrics.disk_total,
  };
}

function entryOf({ kind, age, pid, program, args, status }: GuestEvent, now: number): NewEntry {
  const fields = { pid: String(pid), program: plain(program), args: String(args) };
  const at = Math.max(0, now - age);
  if (kind === 'start') {
    const message = `process ${pid} started: ${fields.program} (${args} arguments)`;
    return { at, level: 'info', logger: 'process', message, fields };
  }
  const how = plain(status ?? 'unknown');
  const message = `process ${pid} ended: ${how}`;
  return { at, level: 'info', logger: 'process', message, fields: { ...fields, status: how } };
}

/** Names come from clients and guests, and a log is read on terminals. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '');
}
