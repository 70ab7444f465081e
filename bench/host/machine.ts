import { readFile } from 'node:fs/promises';
import { availableParallelism, loadavg, release, totalmem } from 'node:os';

/** On what the numbers were taken; without it they mean nothing. */
export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  /** GiB */
  readonly memory: number;
  readonly kernel: string;
  readonly qemu: string;
  readonly accelerator: string;
  readonly guestKernel: string;
  readonly node: string;
}

export async function machineFacts(
  vm: Pick<MachineFacts, 'qemu' | 'accelerator' | 'guestKernel'>,
): Promise<MachineFacts> {
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  return {
    cpu: /^model name\s*:\s*(.+)$/m.exec(cpuinfo)?.[1] ?? 'unknown',
    cores: availableParallelism(),
    memory: Number((totalmem() / 2 ** 30).toFixed(1)),
    kernel: release(),
    ...vm,
    node: process.version,
  };
}

/** The load average of the last minute. */
export function load(): number {
  return Number((loadavg()[0] ?? 0).toFixed(2));
}
