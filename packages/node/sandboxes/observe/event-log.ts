import type { LogLevel, LogQuery, SandboxLogEntry } from './contract.ts';

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
const MAX_ENTRIES = 1000;
/** characters of all entries together */
const MAX_SIZE = 256 * 1024;
const MAX_MESSAGE = 2000;

export interface NewEntry extends Omit<SandboxLogEntry, 'fields'> {
  readonly fields?: SandboxLogEntry['fields'];
}

/** What has happened to a sandbox and in it. Bounded: the oldest goes first. */
export class EventLog {
  readonly #entries: SandboxLogEntry[] = [];
  #size = 0;
  #last = 0;

  /**
   * Adds an entry. What comes late stands behind what came before, a millisecond later: a reader goes on from the last
   * moment that it has seen, and must not miss what was written since.
   */
  add({ at, level, logger, message, fields = {} }: NewEntry): void {
    this.#last = Math.max(Math.floor(at), this.#last + 1);
    const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
    const entry = { at: this.#last, level, logger, message: text, fields };
    this.#entries.push(entry);
    this.#size += sizeOf(entry);
    let over = 0;
    while (this.#entries.length - over > MAX_ENTRIES || this.#size > MAX_SIZE) {
      const oldest = this.#entries[over];
      if (oldest === undefined) break;
      this.#size -= sizeOf(oldest);
      over += 1;
    }
    if (over > 0) this.#entries.splice(0, over);
  }

  /** What matches, in the order of reading. */
  read({ cursor, direction, limit, level, search }: LogQuery): SandboxLogEntry[] {
    const least = level === undefined ? 0 : LEVELS.indexOf(level);
    const wanted = search?.toLowerCase() ?? '';
    const forward = direction === 'forward';
    const found: SandboxLogEntry[] = [];
    for (const entry of forward ? this.#entries : this.#entries.toReversed()) {
      if (found.length >= limit) break;
      if (cursor !== undefined && (forward ? entry.at < cursor : entry.at > cursor)) continue;
      if (LEVELS.indexOf(entry.level) < least) continue;
      if (!entry.message.toLowerCase().includes(wanted)) continue;
      found.push(entry);
    }
    return found;
  }
}

function sizeOf({ message, fields }: SandboxLogEntry): number {
  return Object.entries(fields).reduce((sum, [name, value]) => sum + name.length + value.length, message.length + 64);
}
