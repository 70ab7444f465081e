import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { driveArguments } from '@aenv/vmm/qemu/drives.ts';
import { machineArguments } from '@aenv/vmm/qemu/machine.ts';
import type { BenchHost } from '../host/bench-host.ts';
import type { BareGuest } from './bare-guest.ts';

/** `ms` of one boot of the bare guest. */
export interface BareBoot {
  /** start of the QEMU process to the first line of init */
  readonly init: number;
  /** execution of the runtime to the first answer of its server, asked from inside */
  readonly runtime: number;
  /** start of the QEMU process to that answer: both, and the modules and the drive in between */
  readonly answered: number;
}

const LIMIT_MS = 90_000;
const ATTEMPTS = 2;

/**
 * Boots the product's kernel under the product's QEMU with nothing but a console and the tools drive, as large as the
 * template `base`, and starts the runtime in it.
 * @throws Error with the console's last lines when it does not come up, twice
 */
export async function bareBoot(host: BenchHost, guest: BareGuest, signal: AbortSignal): Promise<BareBoot> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bootOnce(host, guest, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function bootOnce(host: BenchHost, guest: BareGuest, signal: AbortSignal): Promise<BareBoot> {
  const { qemu, accelerator, kernelArgs } = host;
  const tools = { kind: 'file', path: host.guest.tools.path, format: 'raw', readOnly: true } as const;
  const begin = performance.now();
  const child = spawn(
    qemu.system,
    [
      ...machineArguments(qemu, accelerator),
      ...['-smp', '1', '-m', '512M', '-serial', 'stdio'],
      ...driveArguments([{ name: 'tools', source: tools }]),
      ...['-kernel', host.guest.kernel.path, '-initrd', guest.initramfs, '-append', kernelArgs],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ...qemu.env } },
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  try {
    const at = await marks(child, AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]));
    return { init: at.init - begin, runtime: at.answered - at.start, answered: at.answered - begin };
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

/** When the guest said what. */
interface Marks {
  readonly init: number;
  readonly start: number;
  readonly answered: number;
}

function marks(child: ChildProcess & { stdout: NodeJS.ReadableStream }, signal: AbortSignal): Promise<Marks> {
  const { promise, resolve, reject } = Promise.withResolvers<Marks>();
  const seen = new Map<string, number>();
  const last: string[] = [];
  const fail = (why: string) => reject(new Error(`the bare guest ${why}; it said: ${last.join(' | ')}`));
  const keep = (line: string) => {
    last.push(line);
    if (last.length > 8) last.shift();
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    const now = performance.now();
    keep(line);
    if (line.startsWith('failed:')) return fail('failed');
    if (!seen.has(line)) seen.set(line, now);
    const [init, start, answered] = ['init', 'start', 'answered'].map((mark) => seen.get(mark));
    if (init !== undefined && start !== undefined && answered !== undefined) resolve({ init, start, answered });
  });
  child.stderr?.on('data', (chunk: Buffer) => keep(chunk.toString().trim()));
  child.once('error', reject);
  child.once('close', () => fail('ended'));
  signal.addEventListener('abort', () => fail('was given up'), { once: true });
  return promise;
}
