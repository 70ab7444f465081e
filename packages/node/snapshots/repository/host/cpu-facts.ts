import { readFile } from 'node:fs/promises';
import type { CpuFacts } from '../../contract.ts';

/** What this host's processor is. @param tscKhz as it was measured */
export async function readCpuFacts(tscKhz?: number): Promise<CpuFacts> {
  return { ...parseCpuInfo(await readFile('/proc/cpuinfo', 'utf8')), ...(tscKhz === undefined ? {} : { tscKhz }) };
}

/** The first processor of /proc/cpuinfo, see proc_cpuinfo(5); x86 and ARM name their lines differently. */
export function parseCpuInfo(text: string): Omit<CpuFacts, 'tscKhz'> {
  const first = text.split('\n\n', 1)[0] ?? '';
  const lines = new Map(
    first.split('\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
  const arm = ['CPU implementer', 'CPU part', 'CPU revision'].flatMap((name) => lines.get(name) ?? []).join(' ');
  const flags = lines.get('flags') ?? lines.get('Features') ?? '';
  return {
    model: (lines.get('model name') ?? arm) || 'unknown',
    flags: flags.split(/\s+/).filter((flag) => flag !== ''),
  };
}
