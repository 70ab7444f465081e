import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { LogFields, Logger } from '@aenv/platform/observability/logger.ts';

export type BuildLogLevel = 'debug' | 'info' | 'warn' | 'error';

/** A line of a build, as its client reads it. */
export interface BuildLogEntry {
  readonly timestamp: Date;
  readonly level: BuildLogLevel;
  readonly message: string;
}

/** Beyond that only errors are kept. */
const MAX_ENTRIES = 10_000;
const LEVELS: readonly BuildLogLevel[] = ['debug', 'info', 'warn', 'error'];

/** What a build has said, in order. */
export class BuildLog {
  readonly #clock: Clock;
  readonly #entries: BuildLogEntry[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param offset entries of that level and above to leave out
   * @param least the least level that is wanted
   */
  read(offset: number, limit: number, least: BuildLogLevel = 'debug'): readonly BuildLogEntry[] {
    const wanted = LEVELS.slice(LEVELS.indexOf(least));
    return this.#entries.filter(({ level }) => wanted.includes(level)).slice(offset, offset + limit);
  }

  add(level: BuildLogLevel, message: string): void {
    if (this.#entries.length >= MAX_ENTRIES && level !== 'error') return;
    this.#entries.push({ timestamp: new Date(this.#clock.now()), level, message });
  }

  /** A logger whose lines come out here; the node's own log gets them as details. */
  logger(node: Logger): Logger {
    const write = (level: BuildLogLevel) => (message: string, fields?: LogFields) => {
      node.debug(message, fields);
      if (level !== 'debug') this.add(level, `${message}${describe(fields)}`);
    };
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (fields) => this.logger(node.child(fields)),
    };
  }
}

/** Values that people can read; lists are told by their length. */
function describe(fields: LogFields = {}): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => {
    if (name === 'ms' && typeof value === 'number') return `${(value / 1000).toFixed(1)} s`;
    if (Array.isArray(value)) return `${value.length} ${name}`;
    return typeof value === 'string' || typeof value === 'number' ? `${name} ${value}` : [];
  });
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}
