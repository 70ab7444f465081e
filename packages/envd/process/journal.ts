import {
  GUEST_EVENTS_MAX,
  GUEST_PROGRAM_MAX,
  type GuestEvent,
  type GuestReport,
} from '@aenv/contracts/envd/host-api.ts';

interface Entry {
  /** performance.now(), which no step of the clock touches */
  readonly at: number;
  readonly event: Omit<GuestEvent, 'age'>;
}

interface Command {
  readonly cmd: string;
  readonly args: readonly string[];
}

/** Begins and ends of processes, for the host to read. Bounded: when nobody reads, the oldest are forgotten. */
export class Journal {
  // A cursor of an envd that was there before this one must not count, nor one of what was before it began anew.
  #run = `${process.pid}-${Date.now()}`;
  #beginnings = 0;
  readonly #now: () => number;
  #entries: Entry[] = [];
  /** events that came before the first entry */
  #forgotten = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Forgets all: the guest is another sandbox now, in whose life none of it has happened. */
  beginAnew(): void {
    this.#run = `${process.pid}-${Date.now()}-${++this.#beginnings}`;
    this.#entries = [];
    this.#forgotten = 0;
  }

  started(pid: number, command: Command): void {
    this.#add({ kind: 'start', ...describe(pid, command) });
  }

  ended(pid: number, command: Command, status: string): void {
    this.#add({ kind: 'end', ...describe(pid, command), status });
  }

  /** What came after a cursor; everything that is still known after one that means nothing here. */
  since(cursor: string): Pick<GuestReport, 'cursor' | 'lost' | 'events'> {
    const end = this.#forgotten + this.#entries.length;
    const [, run, text] = /^(.+):(\d{1,15})$/.exec(cursor) ?? [];
    const position = run === this.#run ? Math.min(Number(text), end) : 0;
    const now = this.#now();
    return {
      cursor: `${this.#run}:${end}`,
      lost: Math.max(0, this.#forgotten - position),
      events: this.#entries
        .slice(Math.max(0, position - this.#forgotten))
        .map(({ at, event }) => ({ ...event, age: Math.round(now - at) })),
    };
  }

  #add(event: Entry['event']): void {
    this.#entries.push({ at: this.#now(), event });
    if (this.#entries.length <= GUEST_EVENTS_MAX) return;
    this.#entries.shift();
    this.#forgotten += 1;
  }
}

function describe(pid: number, { cmd, args }: Command): Pick<GuestEvent, 'pid' | 'program' | 'args'> {
  return { pid, program: cmd.slice(0, GUEST_PROGRAM_MAX), args: args.length };
}
