import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Clock } from '@aenv/platform/clock/clock.ts';

export interface Upstream {
  /** IPv4 or IPv6 address, the latter perhaps with a zone */
  readonly address: string;
  readonly port: number;
}

const MAX_UPSTREAMS = 3;
const DNS_PORT = 53;
const RECHECK_MS = 1_000;

/** The name servers of a resolver configuration (resolv.conf(5)): at most three, and the local host when none is named. */
export function parseResolvConf(text: string): readonly Upstream[] {
  const upstreams: Upstream[] = [];
  for (const line of text.split('\n')) {
    const [keyword, address] = line.trim().split(/\s+/);
    if (keyword !== 'nameserver' || address === undefined || isIP(address) === 0) continue;
    if (upstreams.length < MAX_UPSTREAMS) upstreams.push({ address, port: DNS_PORT });
  }
  return upstreams.length > 0 ? upstreams : [{ address: '127.0.0.1', port: DNS_PORT }];
}

/** The host's resolver configuration, read again when the file has changed. While it is missing, what it last said holds. */
export class ResolvConf {
  readonly #path: string;
  readonly #clock: Clock;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #version = '';
  #upstreams: readonly Upstream[] = parseResolvConf('');

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  async upstreams(): Promise<readonly Upstream[]> {
    const now = this.#clock.now();
    if (Math.abs(now - this.#checkedAt) < RECHECK_MS) return this.#upstreams;
    this.#checkedAt = now;
    try {
      const { mtimeMs, ino, size } = await stat(this.#path);
      const version = `${ino} ${size} ${mtimeMs}`;
      if (version === this.#version) return this.#upstreams;
      this.#upstreams = parseResolvConf(await readFile(this.#path, 'utf8'));
      this.#version = version;
    } catch {
      // Absent for a moment while it is replaced, or for good: the last servers known are the best guess.
    }
    return this.#upstreams;
  }
}
