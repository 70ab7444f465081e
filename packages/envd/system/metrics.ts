import { readFile, statfs } from 'node:fs/promises';

/** Body of GET /metrics; sizes in bytes, `ts` in unix seconds. */
export interface GuestMetrics {
  readonly ts: number;
  readonly cpu_count: number;
  /** per cent of all processors together since the last call */
  readonly cpu_used_pct: number;
  readonly mem_total: number;
  readonly mem_used: number;
  readonly mem_cache: number;
  readonly mem_total_mib: number;
  readonly mem_used_mib: number;
  readonly disk_used: number;
  readonly disk_total: number;
}

interface CpuTimes {
  readonly busy: number;
  readonly total: number;
  readonly count: number;
}

/** Reads the guest's load from procfs. Remembers the last look, because load is a difference. */
export class MetricsSource {
  #last: CpuTimes = { busy: 0, total: 0, count: 1 };

  async read(): Promise<GuestMetrics> {
    const [stat, meminfo, disk] = await Promise.all([
      readFile('/proc/stat', 'utf8'),
      readFile('/proc/meminfo', 'utf8'),
      statfs('/'),
    ]);
    const cpu = parseCpu(stat);
    const elapsed = cpu.total - this.#last.total;
    const used = elapsed > 0 ? ((cpu.busy - this.#last.busy) / elapsed) * 100 : 0;
    this.#last = cpu;
    const memory = parseMemory(meminfo);
    return {
      ts: Math.floor(Date.now() / 1000),
      cpu_count: cpu.count,
      cpu_used_pct: Math.round(Math.min(100, Math.max(0, used)) * 100) / 100,
      mem_total: memory.total,
      mem_used: memory.used,
      mem_cache: memory.cache,
      mem_total_mib: Math.floor(memory.total / 2 ** 20),
      mem_used_mib: Math.floor(memory.used / 2 ** 20),
      disk_used: (disk.blocks - disk.bfree) * disk.bsize,
      disk_total: disk.blocks * disk.bsize,
    };
  }
}

// proc_stat(5): user nice system idle iowait irq softirq steal, in ticks.
function parseCpu(text: string): CpuTimes {
  const lines = text.split('\n');
  const ticks = (lines[0] ?? '').split(/\s+/).slice(1, 9).map(Number);
  const total = ticks.reduce((sum, value) => sum + value, 0);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  const count = lines.filter((line) => /^cpu\d/.test(line)).length;
  return { busy: total - idle, total, count: Math.max(1, count) };
}

function parseMemory(text: string): { total: number; used: number; cache: number } {
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) * 1024;
  const total = field('MemTotal');
  const cache = field('Cached') + field('SReclaimable') + field('Buffers') - field('Shmem');
  return { total, used: total - field('MemFree') - cache, cache };
}
